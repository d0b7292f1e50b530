#include "sim/scenario/reading.h"

#include "api/text/duration.h"
#include "api/text/quantity.h"

#include <fmt/format.h>

namespace spillway::sim {
namespace {

Result<Bytes> bytes_of(const yaml::Place& place, std::string_view text, std::string_view example) {
  const auto quantity = api::parse_quantity(text);
  if (!quantity || quantity->bytes() < Bytes{0}) {
    return place.wrong(fmt::format("expected an amount of memory, e.g. {}, got \"{}\"", example, text));
  }
  return quantity->bytes();
}

/// The text of a value, also of a plain number.
Result<std::string> text_of(const yaml::Place& place) {
  if (const auto number = place.value().if_int64()) return fmt::format("{}", *number);
  return place.text();
}

}  // namespace

Result<std::optional<Duration>> read_duration(const yaml::Place& place, std::string_view name, Sign sign) {
  if (!place.has(name)) return std::optional<Duration>();
  const yaml::Place member = place.member(name);
  const std::string* text = member.value().if_string();
  const auto parsed = text == nullptr ? Result<Duration>(place.wrong("")) : api::parse_duration(*text);
  if (!parsed || (sign == Sign::kPositive && *parsed < Duration::zero())) {
    return member.wrong(
        fmt::format("expected a duration, e.g. 90s{}", text == nullptr ? "" : ", got \"" + *text + "\""));
  }
  return std::optional(*parsed);
}

Result<std::optional<Bytes>> read_bytes(const yaml::Place& place, std::string_view name) {
  if (!place.has(name)) return std::optional<Bytes>();
  SPILLWAY_TRY(text, text_of(place.member(name)));
  SPILLWAY_TRY(bytes, bytes_of(place.member(name), text, "500Mi"));
  return std::optional(bytes);
}

Result<std::optional<Bytes>> read_rate(const yaml::Place& place, std::string_view name) {
  if (!place.has(name)) return std::optional<Bytes>();
  SPILLWAY_TRY(text, text_of(place.member(name)));
  std::string_view amount = text;
  if (amount.ends_with("/s")) amount.remove_suffix(2);
  SPILLWAY_TRY(bytes, bytes_of(place.member(name), amount, "5Mi/s"));
  return std::optional(bytes);
}

Result<std::optional<double>> read_fraction(const yaml::Place& place, std::string_view name, double least,
                                            double most) {
  if (!place.has(name)) return std::optional<double>();
  const auto number = place.member(name).value().if_double();
  if (!number || *number < least || *number > most) {
    return place.member(name).wrong(fmt::format("expected a number from {} to {}", least, most));
  }
  return number;
}

Result<std::optional<std::pair<std::string, std::string>>> read_label(const yaml::Place& place, std::string_view name) {
  if (!place.has(name)) return std::optional<std::pair<std::string, std::string>>();
  SPILLWAY_TRY(text, place.member(name).text());
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return place.member(name).wrong(fmt::format("expected key=value, got \"{}\"", text));
  }
  return std::optional(std::pair(text.substr(0, equals), text.substr(equals + 1)));
}

Result<std::string> read_quantity(const yaml::Place& place, std::string_view name) {
  if (const auto number = place.member(name).value().if_int64()) return fmt::format("{}", *number);
  SPILLWAY_TRY(text, place.optional_text(name));
  if (!text.empty() && !api::parse_quantity(text)) {
    return place.member(name).wrong(fmt::format("expected a quantity, e.g. 100m or 64Mi, got \"{}\"", text));
  }
  return text;
}

}  // namespace spillway::sim
