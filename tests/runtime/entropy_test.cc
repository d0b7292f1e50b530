#include "runtime/entropy.h"

#include <gtest/gtest.h>

#include <set>

namespace spillway::runtime {
namespace {

TEST(Entropy, IsAnotherEachTime) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(entropy());
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace spillway::runtime
