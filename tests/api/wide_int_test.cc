#include "api/text/wide_int.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <limits>

namespace spillway::api {
namespace {

__extension__ using Int128 = __int128;

WideInt wide(Int128 value) {
  WideInt result(static_cast<std::int64_t>(value >> 64));
  result *= std::uint64_t{1} << 32;
  result *= std::uint64_t{1} << 32;
  const auto low = static_cast<std::uint64_t>(value);
  result += static_cast<std::int64_t>(low >> 1);
  result += static_cast<std::int64_t>(low >> 1);
  result += static_cast<std::int64_t>(low & 1);
  return result;
}

TEST(WideInt, AgreesWithTheCompilersIntegers) {
  Rng rng(11);
  const auto random = [&rng] {
    const auto high = static_cast<Int128>(static_cast<std::int64_t>(rng.next()) >> rng.below(64));
    return (high << 62 | static_cast<Int128>(rng.next() >> 2)) / 8;
  };
  for (int i = 0; i < 20'000; ++i) {
    const Int128 a = random();
    const Int128 b = random();
    EXPECT_EQ(wide(a) + wide(b), wide(a + b));
    EXPECT_EQ(wide(a) - wide(b), wide(a - b));
    EXPECT_EQ(-wide(a), wide(-a));
    EXPECT_EQ(wide(a) <=> wide(b), a <=> b);
    EXPECT_EQ(wide(a).sign(), a < 0 ? -1 : (a > 0 ? 1 : 0));
    const std::uint64_t divisor = rng.next() >> rng.below(63) | 1;
    WideInt quotient = wide(a);
    const Int128 remainder = a % static_cast<Int128>(divisor);
    EXPECT_EQ(quotient.divide_by(divisor), static_cast<std::uint64_t>(remainder < 0 ? -remainder : remainder));
    EXPECT_EQ(quotient, wide(a / static_cast<Int128>(divisor)));
    WideInt again = quotient;
    again *= divisor;
    EXPECT_EQ(again, wide(a - remainder));
  }
}

TEST(WideInt, SaturatesAndSaysSo) {
  EXPECT_EQ(WideInt::max() + WideInt(1), WideInt::max());
  EXPECT_EQ(-WideInt::max() - WideInt(1), -WideInt::max()) << "the lone minimum does not exist";
  EXPECT_EQ(times_power_of_ten(1, 77), WideInt::max());
  EXPECT_EQ(times_power_of_ten(-1, 1'000'000'000), -WideInt::max());
  EXPECT_TRUE(times_power_of_ten(1, 77).is_saturated());
  EXPECT_FALSE(times_power_of_ten(1, 76).is_saturated());
  EXPECT_EQ(times_power_of_ten(0, 1'000'000'000), WideInt());
  EXPECT_EQ(WideInt::max().to_int64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ((-WideInt::max()).to_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(WideInt(std::numeric_limits<std::int64_t>::min()).to_int64(), std::numeric_limits<std::int64_t>::min());
}

TEST(WideInt, PrintsAllDigits) {
  EXPECT_EQ(WideInt().to_decimal(), "0");
  EXPECT_EQ(WideInt(-1).to_decimal(), "-1");
  EXPECT_EQ(times_power_of_ten(-12, 60).to_decimal(), "-12" + std::string(60, '0'));
  EXPECT_EQ(WideInt::max().to_decimal(),
            "57896044618658097711785492504343953926634992332820282019728792003956564819967");
}

TEST(WideInt, DividesByPowersAwayFromZero) {
  EXPECT_EQ(divide_by_power_of_ten_away(1, 40), WideInt(1));
  EXPECT_EQ(divide_by_power_of_ten_away(-1, 40), WideInt(-1));
  EXPECT_EQ(divide_by_power_of_ten_away(0, 40), WideInt());
  EXPECT_EQ(divide_by_power_of_ten_away(times_power_of_ten(5, 40), 40), WideInt(5));
  EXPECT_EQ(divide_by_power_of_ten_away(times_power_of_ten(5, 40) + WideInt(1), 40), WideInt(6));
}

}  // namespace
}  // namespace spillway::api
