// Checks texts for the format that a schema requires. Unknown formats require nothing.
// Thread: any (pure). Source: Kubernetes docs, CustomResourceDefinition v1, JSONSchemaProps, format; RFC 3339, RFC
// 4122, RFC 4291, RFC 5322.
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway::structural {

enum class Format : std::uint8_t {
  kNone,
  kBsonObjectId,
  kByte,
  kCidr,
  kCreditCard,
  kDate,
  kDateTime,
  kDuration,
  kEmail,
  kHexColor,
  kHostname,
  kIpv4,
  kIpv6,
  kIsbn,
  kIsbn10,
  kIsbn13,
  kMac,
  kPassword,
  kQuantity,
  kRgbColor,
  kSsn,
  kUri,
  kUuid,
  kUuid3,
  kUuid4,
  kUuid5,
};

/// Hyphens between words may be left out: "date-time", "datetime". kNone: unknown.
Format parse_format(std::string_view name);
/// The name in messages: "date-time".
std::string_view to_string(Format format);

bool has_format(Format format, std::string_view text);

}  // namespace spillway::structural
