// A signed 256-bit integer that saturates: what an exact amount in nano-units is counted in, without the allocator.
// Thread: any (a plain value). Invariant: never the lone minimum, so that negation is always possible.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace spillway::api {

class WideInt {
 public:
  constexpr WideInt() = default;

  constexpr WideInt(std::int64_t value)  // NOLINT(google-explicit-constructor): every int64 is exact
      : words_{static_cast<std::uint64_t>(value), fill(value), fill(value), fill(value)} {}

  static constexpr WideInt max() {
    WideInt result;
    result.words_ = {kOnes, kOnes, kOnes, kOnes >> 1};
    return result;
  }

  constexpr bool is_negative() const { return (words_[kTop] >> 63) != 0; }

  constexpr bool is_zero() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }

  /// -1, 0 or 1.
  constexpr int sign() const { return is_negative() ? -1 : (is_zero() ? 0 : 1); }

  /// True if max() or -max(): perhaps the result of an overflow.
  bool is_saturated() const;

  /// The value, or the nearest end of the range of int64.
  std::int64_t to_int64() const;
  /// Digits with a leading minus if negative.
  std::string to_decimal() const;

  WideInt operator-() const;
  WideInt& operator+=(const WideInt& other);

  WideInt& operator-=(const WideInt& other) { return *this += -other; }

  WideInt& operator*=(std::uint64_t factor);
  /// Divides towards zero; returns the magnitude of the remainder. `divisor` > 0.
  std::uint64_t divide_by(std::uint64_t divisor);

  friend WideInt operator+(WideInt a, const WideInt& b) { return a += b; }

  friend WideInt operator-(WideInt a, const WideInt& b) { return a -= b; }

  friend constexpr bool operator==(const WideInt&, const WideInt&) = default;

  friend constexpr std::strong_ordering operator<=>(const WideInt& a, const WideInt& b) {
    if (a.is_negative() != b.is_negative()) return b.is_negative() <=> a.is_negative();
    for (std::size_t i = kCount; i-- > 0;) {
      if (a.words_[i] != b.words_[i]) return a.words_[i] <=> b.words_[i];
    }
    return std::strong_ordering::equal;
  }

 private:
  static constexpr std::size_t kCount = 4;
  static constexpr std::size_t kTop = kCount - 1;
  static constexpr std::uint64_t kOnes = ~std::uint64_t{0};

  static constexpr std::uint64_t fill(std::int64_t value) { return value < 0 ? kOnes : 0; }

  std::array<std::uint64_t, kCount> words_{};  // two's complement, least significant first
};

/// `value` times 10^power, saturating.
WideInt times_power_of_ten(WideInt value, unsigned power);

/// `value` divided by 10^power, away from zero if that is not exact.
WideInt divide_by_power_of_ten_away(WideInt value, unsigned power);

}  // namespace spillway::api
