#include "api/text/wide_int.h"

#include <algorithm>
#include <limits>

namespace spillway::api {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr unsigned kPowersInWord = 19;

constexpr std::uint64_t power_of_ten(unsigned power) {
  std::uint64_t result = 1;
  for (unsigned i = 0; i < power; ++i) result *= 10;
  return result;
}

}  // namespace

bool WideInt::is_saturated() const {
  return *this == max() || *this == -max();
}

std::int64_t WideInt::to_int64() const {
  if (*this > WideInt(std::numeric_limits<std::int64_t>::max())) return std::numeric_limits<std::int64_t>::max();
  if (*this < WideInt(std::numeric_limits<std::int64_t>::min())) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(words_[0]);
}

std::string WideInt::to_decimal() const {
  if (is_zero()) return "0";
  std::string reversed;
  WideInt rest = is_negative() ? -*this : *this;
  while (!rest.is_zero()) {
    std::uint64_t chunk = rest.divide_by(power_of_ten(kPowersInWord - 1));
    for (unsigned i = 0; i < kPowersInWord - 1 && (chunk != 0 || !rest.is_zero()); ++i) {
      reversed += static_cast<char>('0' + chunk % 10);
      chunk /= 10;
    }
  }
  if (is_negative()) reversed += '-';
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

WideInt WideInt::operator-() const {
  WideInt result;
  std::uint64_t carry = 1;
  for (std::size_t i = 0; i < kCount; ++i) {
    result.words_[i] = ~words_[i] + carry;
    carry = (carry != 0 && result.words_[i] == 0) ? 1 : 0;
  }
  return result;
}

WideInt& WideInt::operator+=(const WideInt& other) {
  const bool was_negative = is_negative();
  const bool same_sign = was_negative == other.is_negative();
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Uint128 sum = Uint128{words_[i]} + other.words_[i] + carry;
    words_[i] = static_cast<std::uint64_t>(sum);
    carry = static_cast<std::uint64_t>(sum >> 64);
  }
  const bool lone_minimum = is_negative() && words_[0] == 0 && words_[1] == 0 && words_[2] == 0 && words_[3] << 1 == 0;
  if ((same_sign && is_negative() != was_negative) || lone_minimum) *this = was_negative ? -max() : max();
  return *this;
}

WideInt& WideInt::operator*=(std::uint64_t factor) {
  if ((words_[1] | words_[2] | words_[3]) == 0) {  // as most amounts: fits two words
    const Uint128 product = Uint128{words_[0]} * factor;
    words_[0] = static_cast<std::uint64_t>(product);
    words_[1] = static_cast<std::uint64_t>(product >> 64);
    return *this;
  }
  const bool negative = is_negative();
  WideInt magnitude = negative ? -*this : *this;
  std::uint64_t carry = 0;
  for (std::uint64_t& word : magnitude.words_) {
    const Uint128 product = Uint128{word} * factor + carry;
    word = static_cast<std::uint64_t>(product);
    carry = static_cast<std::uint64_t>(product >> 64);
  }
  if (carry != 0 || magnitude.is_negative()) magnitude = max();
  return *this = negative ? -magnitude : magnitude;
}

std::uint64_t WideInt::divide_by(std::uint64_t divisor) {
  const bool negative = is_negative();
  WideInt magnitude = negative ? -*this : *this;
  std::uint64_t remainder = 0;
  for (std::size_t i = kCount; i-- > 0;) {
    std::uint64_t& word = magnitude.words_[i];
    if (remainder == 0 && word < divisor) {  // most amounts fill only the low words
      remainder = word;
      word = 0;
      continue;
    }
    const Uint128 part = Uint128{remainder} << 64 | word;
    word = static_cast<std::uint64_t>(part / divisor);
    remainder = static_cast<std::uint64_t>(part % divisor);
  }
  *this = negative ? -magnitude : magnitude;
  return remainder;
}

WideInt times_power_of_ten(WideInt value, unsigned power) {
  for (; power > 0 && !value.is_zero() && !value.is_saturated(); power -= std::min(power, kPowersInWord)) {
    value *= power_of_ten(std::min(power, kPowersInWord));
  }
  return value;
}

WideInt divide_by_power_of_ten_away(WideInt value, unsigned power) {
  const int sign = value.sign();
  bool exact = true;
  for (; power > 0 && !value.is_zero(); power -= std::min(power, kPowersInWord)) {
    if (value.divide_by(power_of_ten(std::min(power, kPowersInWord))) != 0) exact = false;
  }
  return exact ? value : value + WideInt(sign);
}

}  // namespace spillway::api
