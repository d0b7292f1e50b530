#include "policy/addresses/cidr_set.h"

#include "base/rng.h"
#include "policy/addresses/ip_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::addresses {
namespace {

api::IpRange range(const std::string& text) {
  return *api::parse_ip_range(text);
}

/// A bitmap and the set of runs agree after any operations.
TEST(CidrSet, AgreesWithABitmap) {
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    constexpr std::uint64_t kBlocks = 16;
    auto set = CidrSet::create(range("10.244.0.0/20"), 24);
    ASSERT_TRUE(set);
    std::vector<bool> occupied(kBlocks);
    std::uint64_t next = 0;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t bits = rng.below(5);  // the range has one to sixteen blocks
      const std::uint64_t size = std::uint64_t{1} << bits;
      const std::uint64_t first = rng.below(kBlocks) / size * size;
      const api::IpRange some{nth_block(range("10.244.0.0/20").first, first, 8), 24 - static_cast<int>(bits)};
      const std::uint64_t what = rng.below(4);
      if (what == 0) {
        ASSERT_TRUE(set->occupy(some));
      } else if (what == 1) {
        ASSERT_TRUE(set->release(some));
      }
      for (std::uint64_t i = 0; what < 2 && i < size; ++i) occupied[first + i] = what == 0;
      if (what < 2) continue;
      std::uint64_t tried = 0;
      while (tried < kBlocks && occupied[(next + tried) % kBlocks]) ++tried;
      const auto block = set->allocate();
      ASSERT_EQ(block.has_value(), tried < kBlocks);
      if (!block) continue;
      const std::uint64_t want = (next + tried) % kBlocks;
      ASSERT_EQ(to_text(*block), "10.244." + std::to_string(want) + ".0/24");
      occupied[want] = true;
      next = want + 1;
    }
  }
}

TEST(CidrSet, TheWholeInternetTakesNoMemory) {
  auto set = CidrSet::create(range("0.0.0.0/0"), 32);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->blocks_max(), std::uint64_t{1} << 32U);
  ASSERT_TRUE(set->occupy(range("0.0.0.0/1")));
  EXPECT_EQ(to_text(*set->allocate()), "128.0.0.0/32");
  ASSERT_TRUE(set->release(range("0.0.0.0/0")));
  EXPECT_EQ(to_text(*set->allocate()), "128.0.0.1/32");
}

TEST(CidrSet, RefusesBlocksThatDoNotFit) {
  EXPECT_FALSE(CidrSet::create(range("10.0.0.0/24"), 16));
  EXPECT_FALSE(CidrSet::create(range("10.0.0.0/24"), 33));
  EXPECT_FALSE(CidrSet::create(range("fd00::/64"), 81));
  EXPECT_TRUE(CidrSet::create(range("fd00::/112"), 128));
}

}  // namespace
}  // namespace spillway::addresses
