#include "telemetry/span.h"

#include <fmt/format.h>

#include <charconv>

namespace spillway::telemetry {
namespace {

/// Parses hexadecimal digits; the header allows lower case only.
std::optional<std::uint64_t> parse_hex(std::string_view digits) {
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

}  // namespace

std::optional<SpanContext> parse_traceparent(std::string_view text) {
  constexpr std::size_t kLength = 55;  // version, trace, span, flags: 2 + 32 + 16 + 2 digits, and 3 dashes
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const bool longer = text.size() > kLength;
  if (version == "ff" || !parse_hex(version) || (longer && (version == "00" || text[kLength] != '-'))) {
    return std::nullopt;
  }
  const auto high = parse_hex(text.substr(3, 16));
  const auto low = parse_hex(text.substr(19, 16));
  const auto span = parse_hex(text.substr(36, 16));
  const auto flags = parse_hex(text.substr(53, 2));
  if (!high || !low || !span || !flags || (*high == 0 && *low == 0) || *span == 0) return std::nullopt;
  return SpanContext{.trace = {*high, *low}, .span = *span, .sampled = (*flags & 1U) != 0};
}

std::string to_hex(const TraceId& id) {
  return fmt::format("{:016x}{:016x}", id.high, id.low);
}

std::string to_hex(SpanId id) {
  return fmt::format("{:016x}", id);
}

}  // namespace spillway::telemetry
