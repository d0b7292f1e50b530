// Parses the text form of a quantity: scan, suffix, exact value, and the decision to keep the spelling.
#include "api/text/quantity.h"
#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace spillway::api {
namespace {

using Format = Quantity::Format;

__extension__ using WideMantissa = unsigned __int128;

constexpr int kFractionDigitsMax = 9;
constexpr std::uint64_t kNanoPerUnit = 1'000'000'000;
constexpr std::string_view kPattern =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

std::string_view take_while(std::string_view& text, auto&& wanted) {
  std::size_t end = 0;
  while (end < text.size() && wanted(text[end])) ++end;
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end);
  return taken;
}

struct Scan {
  bool negative = false;
  std::string_view whole;     // without leading zeros
  std::string_view fraction;  // as written
  std::string_view suffix;
};

std::optional<Scan> scan(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Scan result;
  const auto is_sign = [](char c) { return c == '+' || c == '-'; };
  if (is_sign(text.front())) {
    result.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  take_while(text, [](char c) { return c == '0'; });
  result.whole = take_while(text, is_digit);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    result.fraction = take_while(text, is_digit);
  }
  const std::string_view from_suffix = text;
  take_while(text, [](char c) { return std::string_view("eEinumkKMGTP").find(c) != std::string_view::npos; });
  if (!text.empty() && is_sign(text.front())) text.remove_prefix(1);
  take_while(text, is_digit);
  if (!text.empty()) return std::nullopt;
  result.suffix = from_suffix;
  return result;
}

struct Scale {
  Format format = Format::kDecimalSI;
  std::int64_t power = 0;  // the exponent of two for BinarySI, else of ten
};

std::optional<Scale> parse_suffix(std::string_view suffix) {
  struct Known {
    std::string_view text;
    Scale scale;
  };

  static constexpr std::array<Known, 16> kKnown = {{
      {"", {Format::kDecimalSI, 0}},
      {"Ki", {Format::kBinarySI, 10}},
      {"Mi", {Format::kBinarySI, 20}},
      {"Gi", {Format::kBinarySI, 30}},
      {"Ti", {Format::kBinarySI, 40}},
      {"Pi", {Format::kBinarySI, 50}},
      {"Ei", {Format::kBinarySI, 60}},
      {"n", {Format::kDecimalSI, -9}},
      {"u", {Format::kDecimalSI, -6}},
      {"m", {Format::kDecimalSI, -3}},
      {"k", {Format::kDecimalSI, 3}},
      {"M", {Format::kDecimalSI, 6}},
      {"G", {Format::kDecimalSI, 9}},
      {"T", {Format::kDecimalSI, 12}},
      {"P", {Format::kDecimalSI, 15}},
      {"E", {Format::kDecimalSI, 18}},
  }};
  for (const Known& known : kKnown) {
    if (known.text == suffix) return known.scale;
  }
  if (suffix.front() != 'e' && suffix.front() != 'E') return std::nullopt;
  suffix.remove_prefix(1);
  if (suffix.starts_with('+')) {
    suffix.remove_prefix(1);
    if (suffix.starts_with('-')) return std::nullopt;
  }
  std::int64_t power = 0;
  const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), power);
  if (error != std::errc{} || end != suffix.data() + suffix.size()) return std::nullopt;
  return Scale{Format::kDecimalExponent, power};
}

WideInt whole_number(std::string_view digits) {
  constexpr std::size_t kChunk = 18;
  WideInt result;
  while (!digits.empty() && !result.is_saturated()) {
    const std::string_view chunk = digits.substr(0, kChunk);
    std::int64_t value = 0;
    std::from_chars(chunk.data(), chunk.data() + chunk.size(), value);
    result = times_power_of_ten(result, static_cast<unsigned>(chunk.size()));
    result += value;
    digits.remove_prefix(chunk.size());
  }
  return result;
}

bool has_non_zero(std::string_view digits) {
  return digits.find_first_not_of('0') != std::string_view::npos;
}

/// whole.fraction × 10^power in nano-units, away from zero. Saturated: too large.
WideInt decimal_nano(const Scan& number, std::int64_t power) {
  const bool zero = number.whole.empty() && !has_non_zero(number.fraction);
  if (zero) return {};
  const auto whole_size = static_cast<std::int64_t>(number.whole.size());
  const auto size = whole_size + static_cast<std::int64_t>(number.fraction.size());
  constexpr std::int64_t kPowerMax = 1'000'000'000;  // far beyond anything that is not zero, one nano or too large
  const std::int64_t point = whole_size + std::clamp(power, -kPowerMax, kPowerMax) + kFractionDigitsMax;
  if (point <= 0) return WideInt(1);
  const std::int64_t kept = std::min(point, size);
  const std::string_view from_whole = number.whole.substr(0, static_cast<std::size_t>(std::min(kept, whole_size)));
  const std::string_view from_fraction =
      number.fraction.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(kept - whole_size, 0)));
  WideInt nano = whole_number(from_whole);
  nano = times_power_of_ten(nano, static_cast<unsigned>(from_fraction.size()));
  nano += whole_number(from_fraction);
  nano = times_power_of_ten(nano, static_cast<unsigned>(point - kept));
  const bool exact = !has_non_zero(number.whole.substr(from_whole.size())) &&
                     !has_non_zero(number.fraction.substr(from_fraction.size()));
  return exact ? nano : nano + WideInt(1);
}

/// whole.fraction × 2^power in nano-units, away from zero, capped at 2^63-1 units. power <= 60.
WideInt binary_nano(const Scan& number, unsigned power) {
  WideInt cap(std::numeric_limits<std::int64_t>::max());
  cap *= kNanoPerUnit;
  const std::uint64_t factor = std::uint64_t{1} << power;
  WideInt nano = whole_number(number.whole);
  nano *= factor;
  nano *= kNanoPerUnit;
  if (nano >= cap) return cap;
  // Fraction digits from the last to the first: part = floor((digit × unit + part) / 10), exact as long as no
  // remainder appeared.
  const WideMantissa unit = WideMantissa{factor} * kNanoPerUnit;
  WideMantissa part = 0;
  bool exact = true;
  for (std::size_t i = number.fraction.size(); i-- > 0;) {
    const WideMantissa sum = unit * static_cast<unsigned>(number.fraction[i] - '0') + part;
    part = sum / 10;
    exact = exact && sum % 10 == 0;
  }
  if (!exact) ++part;
  WideInt fraction(static_cast<std::int64_t>(static_cast<std::uint64_t>(part >> 32)));
  fraction *= std::uint64_t{1} << 32;
  fraction += static_cast<std::int64_t>(static_cast<std::uint64_t>(part) & 0xffffffffU);
  return std::min(nano + fraction, cap);
}

/// True if upstream takes this spelling for canonical and echoes it.
bool keeps_spelling(const Scan& number, const Scale& scale) {
  constexpr std::size_t kDigitsMax = 18;
  const std::string_view whole = number.whole.empty() ? std::string_view("0") : number.whole;
  if (scale.format != Format::kBinarySI) {
    const std::size_t digits = whole.size() + number.fraction.size();
    const std::int64_t power = scale.power - static_cast<std::int64_t>(number.fraction.size());
    if (digits > kDigitsMax || power % 3 != 0 || power < -kFractionDigitsMax || whole.front() == '0') return false;
    std::size_t zeros = 0;
    const auto digit_from_end = [&](std::size_t i) {
      return i < number.fraction.size() ? number.fraction[number.fraction.size() - 1 - i] : whole[digits - 1 - i];
    };
    while (zeros < 3 && zeros < digits && digit_from_end(zeros) == '0') ++zeros;
    return zeros < 3;
  }
  if (!number.fraction.empty()) return false;
  const auto room = 14 - static_cast<std::int64_t>(whole.size()) - scale.power * 3 / 10;
  if (room < 0) return false;
  std::uint64_t integer = 0;
  std::from_chars(whole.data(), whole.data() + whole.size(), integer);
  const bool fits = integer <= (static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) >> scale.power);
  return fits && (integer & 7) != 0;
}

}  // namespace

Result<Quantity> parse_quantity(std::string_view text) {
  const std::optional<Scan> number = scan(text);
  if (!number) return invalid("", "{}", kPattern);
  std::optional<Scale> scale = parse_suffix(number->suffix);
  if (!scale) return invalid("", "unable to parse quantity's suffix");
  Quantity result;
  result.format_ = scale->format;
  if (scale->format == Format::kBinarySI) {
    result.nano_ = binary_nano(*number, static_cast<unsigned>(scale->power));
    if (result.nano_.sign() > 0 && result.nano_ < WideInt(static_cast<std::int64_t>(kNanoPerUnit))) {
      result.format_ = Format::kDecimalSI;
    }
  } else {
    result.nano_ = decimal_nano(*number, scale->power);
    if (result.nano_.is_saturated()) return invalid("", "quantity is too large: its magnitude must stay below 5e67");
  }
  if (number->negative) result.nano_ = -result.nano_;
  if (keeps_spelling(*number, *scale)) result.verbatim_ = std::string(text);
  return result;
}

Result<Quantity> parse_quantity_token(std::string_view token) {
  if (token == "null") return Quantity();
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') token = token.substr(1, token.size() - 2);
  const std::size_t from = token.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return parse_quantity("");
  return parse_quantity(token.substr(from, token.find_last_not_of(" \t\r\n") - from + 1));
}

}  // namespace spillway::api
