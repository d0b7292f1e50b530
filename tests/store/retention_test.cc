#include "store/retention.h"

#include <gtest/gtest.h>

namespace spillway::store {
namespace {

Instant at(Duration since_start) {
  return Instant(since_start);
}

HistoryPolicy small_policy() {
  HistoryPolicy policy;
  policy.age_min = minutes(5);
  policy.revisions_min = 100;
  policy.bytes_max = Bytes{80'000};
  policy.revisions_floor = 10;
  policy.interval = minutes(1);
  return policy;
}

HistorySize size_of(std::uint64_t head, std::uint64_t compacted, Bytes history = Bytes{0}) {
  return HistorySize{Revision(head), Revision(compacted), Bytes{1'000}, history};
}

TEST(Retention, KeepsEverythingThatIsYoung) {
  Retention retention(small_policy(), at(seconds(0)), Revision(0));
  for (int minute = 1; minute <= 4; ++minute) {
    EXPECT_EQ(retention.compact_to(size_of(1'000, 0), at(minutes(minute))), Revision(0));
  }
}

TEST(Retention, ForgetsWhatIsOldButForTheNewest) {
  Retention retention(small_policy(), at(seconds(0)), Revision(50));
  EXPECT_EQ(retention.compact_to(size_of(400, 0), at(minutes(1))), Revision(0));
  EXPECT_EQ(retention.compact_to(size_of(500, 0), at(minutes(5))), Revision(50)) << "as it was five minutes ago";
  EXPECT_EQ(retention.compact_to(size_of(500, 50), at(minutes(6))), Revision(400)) << "the newest hundred stay";
  EXPECT_EQ(retention.compact_to(size_of(450, 50), at(minutes(6))), Revision(350));
}

TEST(Retention, IsNotOldByTheClockOfAnotherStart) {
  Retention retention(small_policy(), at(hours(7)), Revision(500));
  EXPECT_EQ(retention.compact_to(size_of(700, 0), at(hours(7) + minutes(4))), Revision(0));
  EXPECT_EQ(retention.compact_to(size_of(700, 0), at(hours(7) + minutes(5))), Revision(500));
}

TEST(Retention, ChurnShortensHistory) {
  Retention retention(small_policy(), at(seconds(0)), Revision(0));
  EXPECT_EQ(retention.compact_to(size_of(1'000, 0, Bytes{80'000}), at(seconds(1))), Revision(0));
  // 1,000 revisions of 100 bytes: down to 70,000 bytes, 7/8 of the limit.
  EXPECT_EQ(retention.compact_to(size_of(1'000, 0, Bytes{100'000}), at(seconds(1))), Revision(301));
  EXPECT_EQ(retention.compact_to(size_of(1'000, 301, Bytes{69'900}), at(seconds(1))), Revision(301));
}

TEST(Retention, HistoryMayBeHalfOfTheLiveObjects) {
  Retention retention(small_policy(), at(seconds(0)), Revision(0));
  HistorySize size = size_of(1'000, 0, Bytes{100'000});
  size.live = Bytes{200'000};
  EXPECT_EQ(retention.compact_to(size, at(seconds(1))), Revision(0));
}

TEST(Retention, FewLargeRevisionsStay) {
  Retention retention(small_policy(), at(seconds(0)), Revision(0));
  EXPECT_EQ(retention.compact_to(size_of(12, 0, Bytes{10'000'000}), at(seconds(1))), Revision(2));
  EXPECT_EQ(retention.compact_to(size_of(9, 0, Bytes{10'000'000}), at(seconds(1))), Revision(0));
  EXPECT_EQ(retention.compact_to(size_of(12, 5, Bytes{10'000'000}), at(seconds(1))), Revision(5));
}

TEST(Retention, NeverGoesBack) {
  Retention retention(small_policy(), at(seconds(0)), Revision(0));
  EXPECT_EQ(retention.compact_to(size_of(500, 480), at(minutes(10))), Revision(480));
}

TEST(Retention, WakesOncePerInterval) {
  Retention retention(small_policy(), at(seconds(0)), Revision(0));
  EXPECT_EQ(retention.next_wakeup(), at(minutes(1)));
  retention.compact_to(size_of(1, 0), at(seconds(90)));
  EXPECT_EQ(retention.next_wakeup(), at(seconds(150)));
}

}  // namespace
}  // namespace spillway::store
