#include "host/reaction/container_handle.h"

#include "host/process/id_ranges.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace spillway::host {
namespace {

std::string status_with(const char* blocked, const char* ignored, const char* caught) {
  return fmt::format("Name:\tx\nSigQ:\t0/1\nSigBlk:\t{}\nSigIgn:\t{}\nSigCgt:\t{}\nCapInh:\t0\n", blocked, ignored,
                     caught);
}

constexpr const char* kNone = "0000000000000000";
constexpr const char* kTerm = "0000000000004000";
constexpr const char* kAllButTerm = "ffffffffffffbfff";

TEST(DefaultAction, IsWhatNobodyHasChanged) {
  EXPECT_TRUE(has_default_action(status_with(kNone, kNone, kNone), SIGTERM));
  EXPECT_TRUE(has_default_action(status_with(kAllButTerm, kAllButTerm, kAllButTerm), SIGTERM));
  EXPECT_FALSE(has_default_action(status_with(kTerm, kNone, kNone), SIGTERM)) << "it may be waited for";
  EXPECT_FALSE(has_default_action(status_with(kNone, kTerm, kNone), SIGTERM));
  EXPECT_FALSE(has_default_action(status_with(kNone, kNone, kTerm), SIGTERM));
}

TEST(DefaultAction, IsNotGuessed) {
  for (const std::string text : {"", "SigBlk:\t0000000000000000\n", "Name:\tSigCgt:\t0\n", "\nSigBlk:\t00\nSigIgn:\t"})
    EXPECT_FALSE(has_default_action(text, SIGTERM)) << text;
  EXPECT_FALSE(has_default_action(status_with("zz00000000000000", kNone, kNone), SIGTERM));
}

TEST(IdRanges, ArePodsOwnAndComeBack) {
  IdRanges ranges;
  const std::uint32_t first = ranges.take("u1");
  EXPECT_GE(first, IdRanges::kFirst);
  EXPECT_LE(first + (IdRanges::kSize - 1), IdRanges::kLast);
  EXPECT_EQ(first % IdRanges::kSize, 0U);
  const std::uint32_t second = ranges.take("u1");  // as if another uid led there
  EXPECT_NE(second, first);
  ranges.release(first);
  EXPECT_EQ(ranges.take("u1"), first);
}

}  // namespace
}  // namespace spillway::host
