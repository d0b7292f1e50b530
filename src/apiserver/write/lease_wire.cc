#include "apiserver/write/lease_wire.h"

#include <cstddef>
#include <cstdint>

namespace spillway::apiserver {
namespace {

constexpr std::string_view kMagic{"k8s\0", 4};
constexpr std::uint32_t kRaw = 2;        // field of the envelope: the object
constexpr std::uint32_t kSpec = 2;       // field of the Lease
constexpr std::uint32_t kRenewTime = 4;  // number of the field in the spec
constexpr std::uint32_t kSeconds = 1;    // field of a Time
constexpr std::uint32_t kNanos = 2;
constexpr std::uint64_t kSecondsMax = 253'402'300'799;  // 9999-12-31T23:59:59Z
constexpr std::uint64_t kNanosMax = 999'999'999;

std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

struct WireField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // set for a varint
  std::string_view bytes;   // set for a field with a length
  bool is_varint = false;
};

/// The next field of a message; nullopt: it is cut, or no varint and nothing with a length.
std::optional<WireField> take_field(std::string_view& rest) {
  const auto tag = take_varint(rest);
  const auto value = tag && *tag < 256 ? take_varint(rest) : std::nullopt;
  if (!value) return std::nullopt;
  WireField field{.number = static_cast<std::uint32_t>(*tag >> 3U), .value = *value, .is_varint = (*tag & 7U) == 0};
  if (field.is_varint) return field;
  if ((*tag & 7U) != 2 || *value > rest.size()) return std::nullopt;
  field.bytes = rest.substr(0, static_cast<std::size_t>(*value));
  rest.remove_prefix(field.bytes.size());
  return field;
}

/// The first field of that number, if it is one with a length.
std::optional<std::string_view> message_at(std::string_view rest, std::uint32_t number) {
  while (!rest.empty()) {
    const auto field = take_field(rest);
    if (!field) return std::nullopt;
    if (field->number == number) return field->is_varint ? std::nullopt : std::optional(field->bytes);
  }
  return std::nullopt;
}

}  // namespace

std::optional<WallTime> sent_renew_time(std::string_view body) {
  if (!body.starts_with(kMagic)) return std::nullopt;
  const auto lease = message_at(body.substr(kMagic.size()), kRaw);
  const auto spec = lease ? message_at(*lease, kSpec) : std::nullopt;
  auto time = spec ? message_at(*spec, kRenewTime) : std::nullopt;
  if (!time) return std::nullopt;
  const auto whole = take_field(*time);
  const auto nanos = whole ? take_field(*time) : std::nullopt;
  if (!nanos || !time->empty() || !whole->is_varint || !nanos->is_varint) return std::nullopt;
  if (whole->number != kSeconds || nanos->number != kNanos) return std::nullopt;
  if (whole->value > kSecondsMax || nanos->value > kNanosMax) return std::nullopt;
  return WallTime{microseconds(static_cast<std::int64_t>(whole->value * 1'000'000 + nanos->value / 1'000))};
}

}  // namespace spillway::apiserver
