#include "client/work_queue.h"

#include <gtest/gtest.h>

#include <optional>

namespace spillway::client {
namespace {

const Instant kStart{seconds(100)};

TEST(WorkQueue, HandsOutEachNameOnceInOrder) {
  WorkQueue queue;
  queue.add("b", kStart);
  queue.add("a", kStart);
  queue.add("b", kStart + seconds(5));
  queue.add("c", kStart + seconds(1));
  EXPECT_EQ(queue.take(kStart), "b");
  EXPECT_EQ(queue.take(kStart), "a");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  EXPECT_EQ(queue.next_due(), kStart + seconds(1));
  EXPECT_EQ(queue.take(kStart + seconds(1)), "c");
  EXPECT_EQ(queue.active(), 3U);
}

TEST(WorkQueue, AnEarlierDueTimeWins) {
  WorkQueue queue;
  queue.add("a", kStart + seconds(5));
  queue.add("a", kStart + seconds(2));
  EXPECT_EQ(queue.next_due(), kStart + seconds(2));
  EXPECT_EQ(queue.size(), 1U);
}

TEST(WorkQueue, ANameInProgressIsQueuedAgainWhenItIsDone) {
  WorkQueue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.add("a", kStart);
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  queue.done("a");
  EXPECT_EQ(queue.take(kStart), "a");
  queue.done("a");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
}

TEST(WorkQueue, RetriesBackOffUntilForgotten) {
  WorkQueue queue({.retry_min = milliseconds(5), .retry_max = milliseconds(15), .retries_max = 4});
  Instant now = kStart;
  for (const int wait_ms : {5, 10, 15, 15}) {
    ASSERT_TRUE(queue.retry("a", now));
    EXPECT_EQ(queue.next_due(), now + milliseconds(wait_ms));
    now += milliseconds(wait_ms);
    ASSERT_EQ(queue.take(now), "a");
    queue.done("a");
  }
  EXPECT_FALSE(queue.retry("a", now));
  EXPECT_EQ(queue.failures("a"), 0);
  EXPECT_EQ(queue.next_due(), std::nullopt);
  ASSERT_TRUE(queue.retry("a", now));
  EXPECT_EQ(queue.next_due(), now + milliseconds(5));
}

TEST(WorkQueue, CountsAddedAndDueNames) {
  WorkQueue queue;
  queue.add("a", kStart);
  queue.add("b", kStart + seconds(1));
  queue.add("a", kStart);  // queued already
  queue.add("b", kStart + milliseconds(500));
  EXPECT_EQ(queue.adds(), 2U);
  EXPECT_EQ(queue.count_due(kStart - seconds(1)), 0U);
  EXPECT_EQ(queue.count_due(kStart), 1U);
  EXPECT_EQ(queue.count_due(kStart + seconds(1)), 2U);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.done("a");
  ASSERT_TRUE(queue.retry("a", kStart));
  EXPECT_EQ(queue.adds(), 3U);
  EXPECT_EQ(queue.retries(), 1U);
}

TEST(WorkQueue, ANameThatIsRemovedInProgressIsNotQueuedAgain) {
  WorkQueue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.add("a", kStart);
  queue.remove("a");
  queue.done("a");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
  EXPECT_EQ(queue.size(), 0U);
}

TEST(WorkQueue, RemoveForgetsEverything) {
  WorkQueue queue;
  queue.retry("a", kStart);
  queue.remove("a");
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.failures("a"), 0);
  EXPECT_EQ(queue.next_due(), std::nullopt);
}

}  // namespace
}  // namespace spillway::client
