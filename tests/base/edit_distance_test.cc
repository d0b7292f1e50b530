#include "base/edit_distance.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace spillway {
namespace {

TEST(EditDistance, CountsInsertedRemovedAndReplacedBytes) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("zone-outge", "zone-outage"), 1U);
}

TEST(NearestWord, IsTheFirstOfTheNearest) {
  constexpr std::array<std::string_view, 3> kKnown{"cat", "cut", "coat"};
  EXPECT_EQ(nearest_word("cot", kKnown).found(), "cat");
  EXPECT_EQ(nearest_word("coat", kKnown).suggestion(), " (did you mean coat?)");
  EXPECT_EQ(nearest_word("", std::vector<std::string>{}).suggestion(), "");
}

TEST(NearestWord, DiffersInAThirdOfTheWordAndOneAtMost) {
  // Three bytes: two may differ.
  EXPECT_EQ(nearest_word("abc", std::vector<std::string>{"axy"}).found(), "axy");
  EXPECT_EQ(nearest_word("abc", std::vector<std::string>{"xyz"}).found(), "");
}

TEST(NearestWord, SuggestsTheNameThatWasGivenForACandidate) {
  NearestWord nearest("jobz");
  nearest.offer("jobs", "job");
  EXPECT_EQ(nearest.suggestion(), " (did you mean job?)");
}

}  // namespace
}  // namespace spillway
