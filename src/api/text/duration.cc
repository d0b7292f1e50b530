#include "api/text/duration.h"

#include "base/ascii.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace spillway::api {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t nanoseconds;
};

constexpr std::array<Unit, 8> kUnits{{{"ns", 1},
                                      {"us", 1'000},
                                      {"\u00b5s", 1'000},
                                      {"\u03bcs", 1'000},
                                      {"ms", 1'000'000},
                                      {"s", 1'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"h", 3'600'000'000'000}}};

constexpr std::uint64_t kMagnitudeMax = std::uint64_t{1} << 63;  // the magnitude of the most negative duration

/// Longest unit first, so that "m" does not shadow "ms".
const Unit* take_unit(std::string_view& rest) {
  std::size_t length = 0;
  while (length < rest.size() && rest[length] != '.' && !is_digit(rest[length])) ++length;
  for (const Unit& unit : kUnits) {
    if (rest.substr(0, length) == unit.name) {
      rest.remove_prefix(length);
      return &unit;
    }
  }
  return nullptr;
}

/// One "1.5h": nullopt if it is malformed or too large.
std::optional<std::uint64_t> take_term(std::string_view& rest) {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;
  double scale = 1;
  bool digits = false;
  for (; !rest.empty() && is_digit(rest.front()); rest.remove_prefix(1)) {
    const auto digit = static_cast<std::uint64_t>(rest.front() - '0');
    if (whole > (kMagnitudeMax - digit) / 10) return std::nullopt;
    whole = whole * 10 + digit;
    digits = true;
  }
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    bool full = false;
    for (; !rest.empty() && is_digit(rest.front()); rest.remove_prefix(1)) {
      digits = true;
      if (full || fraction > (kMagnitudeMax - 10) / 10) {
        full = true;  // further digits are below a nanosecond of any unit
        continue;
      }
      fraction = fraction * 10 + static_cast<std::uint64_t>(rest.front() - '0');
      scale *= 10;
    }
  }
  const Unit* unit = digits ? take_unit(rest) : nullptr;
  if (unit == nullptr || whole > kMagnitudeMax / unit->nanoseconds) return std::nullopt;
  std::uint64_t nanoseconds = whole * unit->nanoseconds;
  if (fraction > 0) {
    nanoseconds +=
        static_cast<std::uint64_t>(static_cast<double>(fraction) * (static_cast<double>(unit->nanoseconds) / scale));
  }
  return nanoseconds <= kMagnitudeMax ? std::optional(nanoseconds) : std::nullopt;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const auto refuse = [text] {
    return make_error(ErrorCode::kInvalid, "invalid duration \"{}\"; expected for example 300ms, 90s or 1h30m", text);
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return Duration::zero();
  if (rest.empty()) return refuse();
  std::uint64_t total = 0;
  while (!rest.empty()) {
    const std::optional<std::uint64_t> term = take_term(rest);
    if (!term || total > kMagnitudeMax - *term) return refuse();
    total += *term;
  }
  if (negative) return Duration(static_cast<std::int64_t>(0 - total));
  if (total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return refuse();
  return Duration(static_cast<std::int64_t>(total));
}

std::string format_duration(Duration duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  const std::uint64_t magnitude = count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  // Digits of magnitude / unit, without trailing zeros of the fraction.
  const auto decimal = [](std::uint64_t whole, std::uint64_t rest, int width) {
    if (rest == 0) return fmt::format("{}", whole);
    std::string fraction = fmt::format("{:0{}}", rest, width);
    fraction.erase(fraction.find_last_not_of('0') + 1);
    return fmt::format("{}.{}", whole, fraction);
  };
  std::string text = count < 0 ? "-" : "";
  if (magnitude < 1'000) return text + fmt::format("{}ns", magnitude);
  if (magnitude < 1'000'000) return text + decimal(magnitude / 1'000, magnitude % 1'000, 3) + "\u00b5s";
  if (magnitude < 1'000'000'000) return text + decimal(magnitude / 1'000'000, magnitude % 1'000'000, 6) + "ms";
  const std::uint64_t second_count = magnitude / 1'000'000'000;
  if (second_count >= 3600) text += fmt::format("{}h", second_count / 3600);
  if (second_count >= 60) text += fmt::format("{}m", second_count / 60 % 60);
  return text + decimal(second_count % 60, magnitude % 1'000'000'000, 9) + "s";
}

}  // namespace spillway::api
