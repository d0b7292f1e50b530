#include "api/text/quantity.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace spillway::api {
namespace {

using Format = Quantity::Format;

constexpr int kNanoDigits = 9;
constexpr int kExaPower = 18;
constexpr std::uint64_t kKibi = 1024;
constexpr std::array<std::string_view, 7> kBinarySuffixes = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::array<std::string_view, 10> kDecimalSuffixes = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};

/// `digits` without trailing zeros, then padded so that the power of ten is a multiple of 3.
std::string decimal_text(const WideInt& nano, Format format) {
  std::string digits = nano.to_decimal();
  int power = -kNanoDigits;
  std::size_t zeros = 0;
  while (digits[digits.size() - 1 - zeros] == '0') ++zeros;
  int stripped = static_cast<int>(zeros) / 3 * 3;
  if (format != Format::kDecimalExponent && power + stripped > kExaPower) stripped = kExaPower - power;
  digits.resize(digits.size() - static_cast<std::size_t>(stripped));
  power += stripped;
  if (format == Format::kDecimalExponent) return power == 0 ? digits : fmt::format("{}e{}", digits, power);
  digits += kDecimalSuffixes[static_cast<std::size_t>((power + kNanoDigits) / 3)];
  return digits;
}

}  // namespace

Quantity Quantity::of_units(std::int64_t units, Format format) {
  return of_scaled(units, 0, format);
}

Quantity Quantity::of_milli(std::int64_t milli, Format format) {
  return of_scaled(milli, -3, format);
}

Quantity Quantity::of_scaled(std::int64_t number, int scale, Format format) {
  Quantity result;
  result.format_ = format;
  const int power = scale + kNanoDigits;
  result.nano_ = power >= 0 ? times_power_of_ten(number, static_cast<unsigned>(power))
                            : divide_by_power_of_ten_away(number, static_cast<unsigned>(-power));
  return result;
}

bool Quantity::is_zero() const {
  return nano_.is_zero();
}

int Quantity::sign() const {
  return nano_.sign();
}

std::int64_t Quantity::scaled_value(int scale) const {
  const int power = scale + kNanoDigits;
  if (power < 0) return times_power_of_ten(nano_, static_cast<unsigned>(-power)).to_int64();
  return divide_by_power_of_ten_away(nano_, static_cast<unsigned>(power)).to_int64();
}

std::string Quantity::to_string() const {
  return verbatim_.empty() ? canonical() : verbatim_;
}

std::string Quantity::canonical() const {
  if (is_zero()) return "0";
  if (format_ != Format::kBinarySI) return decimal_text(nano_, format_);
  WideInt units = nano_;
  if (units.divide_by(1'000'000'000) != 0) return decimal_text(nano_, format_);
  const WideInt magnitude = units.is_negative() ? -units : units;
  if (magnitude < WideInt(static_cast<std::int64_t>(kKibi))) return decimal_text(nano_, format_);
  std::size_t suffix = 0;
  for (WideInt smaller = units; suffix + 1 < kBinarySuffixes.size() && smaller.divide_by(kKibi) == 0; ++suffix) {
    units = smaller;
  }
  return units.to_decimal().append(kBinarySuffixes[suffix]);
}

Quantity Quantity::rounded_up(int scale) const {
  const int power = scale + kNanoDigits;
  if (power <= 0) return *this;
  const WideInt rounded = times_power_of_ten(divide_by_power_of_ten_away(nano_, static_cast<unsigned>(power)),
                                             static_cast<unsigned>(power));
  if (rounded == nano_) return *this;
  Quantity result;
  result.nano_ = rounded;
  result.format_ = format_;
  return result;
}

Quantity& Quantity::operator+=(const Quantity& other) {
  verbatim_.clear();
  if (is_zero()) format_ = other.format_;
  nano_ += other.nano_;
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
  verbatim_.clear();
  if (is_zero()) format_ = other.format_;
  nano_ -= other.nano_;
  return *this;
}

Quantity& Quantity::operator*=(std::int64_t factor) {
  verbatim_.clear();
  const std::uint64_t magnitude =
      factor < 0 ? ~static_cast<std::uint64_t>(factor) + 1 : static_cast<std::uint64_t>(factor);
  nano_ *= magnitude;
  if (factor < 0) nano_ = -nano_;
  return *this;
}

Quantity Quantity::operator-() const {
  Quantity result;
  result.nano_ = -nano_;
  result.format_ = format_;
  return result;
}

}  // namespace spillway::api
