// Functions that convert a value to another type, and type().
#include "base/ascii.h"
#include "base/utf8.h"
#include "policy/cel/functions.h"
#include "policy/cel/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace spillway::cel {

namespace {

constexpr std::size_t kNumberBytesMax = 64;

Error out_of_range(std::string_view type) {
  return evaluation_error(fmt::format("{} overflow", type == "int" ? "integer" : "unsigned integer"));
}

Result<Value> same(const Call& call) {
  return call[0];
}

/// Parses a double as Go does: with an exponent of two behind 0x, and infinity and NaN by name.
std::optional<double> double_in(std::string_view text) {
  if (text.size() > kNumberBytesMax || text.empty()) return std::nullopt;
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  const std::string lower = lower_case(text);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const bool hex = lower.starts_with("0x");
    if (hex && !lower.contains('p')) return std::nullopt;
    const std::string_view digits = std::string_view(lower).substr(hex ? 2 : 0);
    if (digits.empty() || (!is_digit(digits.front()) && digits.front() != '.' && !hex)) return std::nullopt;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                      hex ? std::chars_format::hex : std::chars_format::general);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  }
  return negative ? -value : value;
}

template <typename T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  if (text.size() > kNumberBytesMax) return std::nullopt;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  if (digits.size() != text.size() && (digits.starts_with('-') || digits.starts_with('+'))) return std::nullopt;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
}

template <typename T>
Result<Value> parse_number(const Call& call, std::string_view type) {
  const std::optional<T> value = number_in<T>(call.string(0));
  if (!value) {
    return evaluation_error(fmt::format("type conversion error from 'string' to '{}'", type));
  }
  return Value(*value);
}

Result<Value> int_of_uint(const Call& call) {
  const std::uint64_t value = call[0].as<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return out_of_range("int");
  return Value(static_cast<std::int64_t>(value));
}

Result<Value> int_of_double(const Call& call) {
  constexpr double kLimit = 9223372036854775808.0;
  const double value = call[0].as<double>();
  if (!(value > -kLimit && value < kLimit)) return out_of_range("int");
  return Value(static_cast<std::int64_t>(value));
}

Result<Value> int_of_string(const Call& call) {
  return parse_number<std::int64_t>(call, "int");
}

Result<Value> int_of_time(const Call& call) {
  return Value(call[0].as<Moment>().seconds);
}

Result<Value> int_of_duration(const Call& call) {
  return Value(std::int64_t{call[0].as<Duration>().count()});
}

Result<Value> uint_of_int(const Call& call) {
  const std::int64_t value = call[0].as<std::int64_t>();
  if (value < 0) return out_of_range("uint");
  return Value(static_cast<std::uint64_t>(value));
}

Result<Value> uint_of_double(const Call& call) {
  constexpr double kLimit = 18446744073709551616.0;
  const double value = call[0].as<double>();
  if (!(value >= 0 && value < kLimit)) return out_of_range("uint");
  return Value(static_cast<std::uint64_t>(value));
}

Result<Value> uint_of_string(const Call& call) {
  return parse_number<std::uint64_t>(call, "uint");
}

Result<Value> double_of_int(const Call& call) {
  return Value(static_cast<double>(call[0].as<std::int64_t>()));
}

Result<Value> double_of_uint(const Call& call) {
  return Value(static_cast<double>(call[0].as<std::uint64_t>()));
}

Result<Value> double_of_string(const Call& call) {
  const std::optional<double> value = double_in(call.string(0));
  if (!value) return evaluation_error("type conversion error from 'string' to 'double'");
  return Value(*value);
}

Result<Value> string_of_int(const Call& call) {
  return Value::text(fmt::format("{}", call[0].as<std::int64_t>()));
}

Result<Value> string_of_uint(const Call& call) {
  return Value::text(fmt::format("{}", call[0].as<std::uint64_t>()));
}

Result<Value> string_of_bool(const Call& call) {
  return Value::text(call[0].as<bool>() ? "true" : "false");
}

/// The shortest digits of the value, with an exponent below 1e-4 and from 1e6 on.
Result<Value> string_of_double(const Call& call) {
  const double value = call[0].as<double>();
  if (std::isnan(value)) return Value::text("NaN");
  if (std::isinf(value)) return Value::text(value < 0 ? "-Inf" : "+Inf");
  const double size = std::fabs(value);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e6);
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 exponent ? std::chars_format::scientific : std::chars_format::fixed);
  return Value::text(std::string(text.data(), end.ptr));
}

Result<Value> string_of_bytes(const Call& call) {
  const std::string_view bytes = call[0].as<Bytes>().bytes;
  if (!call.budget.charge_bytes(bytes.size())) return over_budget();
  if (!is_utf8(bytes)) return evaluation_error("invalid UTF-8 in bytes, cannot convert to string");
  return Value::text(std::string(bytes));
}

Result<Value> string_of_time(const Call& call) {
  return Value::text(time_text(call[0].as<Moment>()));
}

Result<Value> string_of_duration(const Call& call) {
  return Value::text(seconds_text(call[0].as<Duration>()));
}

Result<Value> bytes_of_string(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value::bytes(std::string(call.string(0)));
}

Result<Value> bool_of_string(const Call& call) {
  static constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "true", "TRUE", "True"};
  static constexpr std::array<std::string_view, 6> kFalse{"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(kTrue, call.string(0)) != kTrue.end()) return Value(true);
  if (std::ranges::find(kFalse, call.string(0)) != kFalse.end()) return Value(false);
  return evaluation_error("type conversion error from 'string' to 'bool'");
}

Result<Value> type_of(const Call& call) {
  return Value(TypeName{type_name(call[0])});
}

constexpr std::array kConversionRows = std::to_array<Definition>({
    {"int", "int -> int", same},
    {"int", "uint -> int", int_of_uint},
    {"int", "double -> int", int_of_double},
    {"int", "string -> int", int_of_string},
    {"int", "timestamp -> int", int_of_time},
    {"int", "duration -> int", int_of_duration},
    {"uint", "uint -> uint", same},
    {"uint", "int -> uint", uint_of_int},
    {"uint", "double -> uint", uint_of_double},
    {"uint", "string -> uint", uint_of_string},
    {"double", "double -> double", same},
    {"double", "int -> double", double_of_int},
    {"double", "uint -> double", double_of_uint},
    {"double", "string -> double", double_of_string},
    {"string", "string -> string", same},
    {"string", "bool -> string", string_of_bool},
    {"string", "int -> string", string_of_int},
    {"string", "uint -> string", string_of_uint},
    {"string", "double -> string", string_of_double},
    {"string", "bytes -> string", string_of_bytes},
    {"string", "timestamp -> string", string_of_time},
    {"string", "duration -> string", string_of_duration},
    {"bytes", "bytes -> bytes", same},
    {"bytes", "string -> bytes", bytes_of_string},
    {"bool", "bool -> bool", same},
    {"bool", "string -> bool", bool_of_string},
    {"dyn", "A -> dyn", same},
    {"type", "A -> type(A)", type_of},
});

}  // namespace

std::span<const Definition> conversions() {
  return kConversionRows;
}

}  // namespace spillway::cel
