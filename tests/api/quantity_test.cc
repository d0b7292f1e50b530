#include "api/text/quantity.h"

#include "base/rng.h"

#include <gtest/gtest.h>

#include <limits>

namespace spillway::api {
namespace {

using Format = Quantity::Format;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

Quantity q(std::string_view text) {
  const auto parsed = parse_quantity(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().text();
  return parsed.value_or(Quantity());
}

TEST(Quantity, HugeNumbersAreRefusedNotComputed) {
  for (const std::string_view text : {"1e68", "1e2147483647", "1e9223372036854775807", "-1e99"}) {
    const auto parsed = parse_quantity(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(parsed.error().message, "quantity is too large: its magnitude must stay below 5e67");
  }
  EXPECT_FALSE(parse_quantity("1e9223372036854775808")) << "an exponent beyond 64 bits";
  EXPECT_FALSE(parse_quantity(std::string(100, '9')));
  EXPECT_EQ(q("1e67").canonical(), "10e66");
  EXPECT_EQ(q("0e2147483647"), Quantity());
  EXPECT_EQ(q("1e-2147483647").canonical(), "1e-9") << "the smallest amount there is";
  EXPECT_EQ(q(std::string(1000, '0') + "5"), q("5"));
  EXPECT_EQ(q("0." + std::string(1000, '0') + "5"), q("1n"));
  EXPECT_EQ(q(std::string(100, '9') + "Ki").value(), kMax) << "binary amounts are capped";
}

TEST(Quantity, LongBinaryFractionsRoundExactlyOnce) {
  // 2^-60 has 60 decimals: in Ei it is exactly one unit.
  EXPECT_EQ(q("0.000000000000000000867361737988403547205962240695953369140625Ei"), q("1"));
  EXPECT_EQ(q("0.0000000000000000008673617379884035472059622406959533691406250000001Ei"), q("1.000000001"));
  EXPECT_EQ(q("0.000000000000000000867361737988403547205962240695953369140624Ei"), q("1")) << "up to the next nano";
}

TEST(Quantity, SaturatesAtTheEnds) {
  EXPECT_EQ(q("1e30").value(), kMax);
  EXPECT_EQ(q("-1e30").value(), kMin);
  EXPECT_EQ(q("9223372036854775807").value(), kMax);
  EXPECT_EQ(q("-9223372036854775808").value(), kMin);
  EXPECT_EQ(q("1E").milli_value(), kMax) << "1e21 thousandths";
  Quantity sum = q("5e67");
  sum += sum;
  sum += sum;
  EXPECT_GT(sum, q("5e67"));
  EXPECT_EQ(sum + sum, sum);
  EXPECT_EQ((-sum).sign(), -1);
}

TEST(Quantity, RoundsAwayFromZero) {
  EXPECT_EQ(q("0.1n"), q("1n"));
  EXPECT_EQ(q("-0.1n"), q("-1n"));
  EXPECT_EQ(q("1n").value(), 1);
  EXPECT_EQ(q("-1n").value(), -1);
  EXPECT_EQ(q("1u").milli_value(), 1);
  EXPECT_EQ(q("1001m").value(), 2);
}

TEST(Quantity, ComparesByValueAlone) {
  EXPECT_EQ(q("1.5Gi"), q("1536Mi"));
  EXPECT_EQ(q("1000m"), q("1"));
  EXPECT_EQ(q("1e3"), q("1k"));
  EXPECT_LT(q("-1"), q("0"));
  EXPECT_LT(q("1Gi"), q("1.1G"));
  EXPECT_LT(q("1e40"), q("1e41"));
  EXPECT_GT(q("-1e40"), q("-1e41"));
}

TEST(Quantity, SumsTakeTheFormatOfWhatIsThere) {
  EXPECT_EQ((Quantity() + q("1Gi")).to_string(), "1Gi");
  EXPECT_EQ((q("1Gi") + q("1G")).format(), Format::kBinarySI);
  EXPECT_EQ((q("1G") - q("1Gi")).canonical(), "-73741824");
  EXPECT_EQ((q("1.500") + Quantity()).to_string(), "1500m") << "a sum is not as it was spelled";
  EXPECT_EQ(q("1.500").to_string(), "1.500");
}

TEST(Quantity, MakersAgreeWithTheParser) {
  EXPECT_EQ(Quantity::of_bytes(mebibytes(1536)).to_string(), "1536Mi");
  EXPECT_EQ(Quantity::of_milli(-1500).to_string(), "-1500m");
  EXPECT_EQ(Quantity::of_units(kMin), q("-9223372036854775808"));
  EXPECT_EQ(Quantity::of_scaled(1, -12), q("1n"));
  EXPECT_EQ(Quantity::of_scaled(-1, -12), q("-1n"));
  EXPECT_EQ(Quantity::of_scaled(7, 3, Format::kDecimalExponent).to_string(), "7e3");
  EXPECT_EQ(q("12Ki").bytes(), kibibytes(12));
}

/// Every printed text parses back to the same amount, and sums agree with integers.
TEST(Quantity, PrintedAmountsReadBack) {
  Rng rng(7);
  constexpr Format kFormats[] = {Format::kDecimalSI, Format::kBinarySI, Format::kDecimalExponent};
  for (int i = 0; i < 20'000; ++i) {
    const auto random = [&rng] {
      const auto bits = static_cast<std::int64_t>(rng.next()) >> rng.below(63);
      return rng.chance_ppm(300'000) ? bits / 1024 * 1024 : bits;
    };
    const std::int64_t a = random() / 4;
    const std::int64_t b = random() / 4;
    const Format format = kFormats[rng.below(3)];
    const Quantity sum = Quantity::of_units(a, format) + Quantity::of_units(b);
    EXPECT_EQ(sum.value(), a + b);
    EXPECT_EQ(q(sum.to_string()), sum) << sum.to_string();
    const Quantity small = Quantity::of_scaled(a, -9, format);
    EXPECT_EQ(q(small.to_string()), small) << small.to_string();
    EXPECT_EQ(Quantity::of_milli(a) <=> Quantity::of_milli(b), a <=> b);
  }
}

TEST(QuantityToken, TakesStringsNumbersAndNull) {
  EXPECT_EQ(parse_quantity_token("\" 5Gi \"").value(), q("5Gi"));
  EXPECT_EQ(parse_quantity_token("1.5").value(), q("1500m"));
  EXPECT_EQ(parse_quantity_token("null").value(), Quantity());
  for (const std::string_view token : {"", "\"\"", "  ", "\"", "true", "[]"}) {
    EXPECT_FALSE(parse_quantity_token(token)) << token;
  }
}

}  // namespace
}  // namespace spillway::api
