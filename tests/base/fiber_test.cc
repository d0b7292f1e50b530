// A computation on a stack of its own: its slices, its end, and what is left of one that is not resumed.
#include "base/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway {
namespace {

TEST(Fiber, RunsToItsEndWhereOneSliceIsEnough) {
  int done = 0;
  Fiber fiber([&] {
    count_work(10);
    done = 1;
  });
  EXPECT_EQ(done, 0) << "it begins with the first slice";
  EXPECT_TRUE(fiber.resume(100));
  EXPECT_EQ(done, 1);
}

TEST(Fiber, GivesTheThreadBackWhenASliceIsUsedUp) {
  std::vector<int> seen;
  Fiber fiber([&] {
    for (int i = 0; i < 5; ++i) {
      seen.push_back(i);
      count_work(10);
    }
  });
  EXPECT_FALSE(fiber.resume(20));
  EXPECT_EQ(seen, (std::vector{0, 1}));
  EXPECT_FALSE(fiber.resume(25));
  EXPECT_EQ(seen, (std::vector{0, 1, 2, 3, 4})) << "a slice ends behind the work that exceeds it";
  EXPECT_TRUE(fiber.resume(1));
}

TEST(Fiber, CountsNothingOutside) {
  count_work(1'000'000);
  SUCCEED() << "it has returned";
}

TEST(Fiber, SeveralTakeTurns) {
  std::string order;
  const auto work = [&order](char name) {
    return [&order, name] {
      for (int i = 0; i < 3; ++i) {
        order += name;
        count_work(1);
      }
    };
  };
  Fiber a(work('a'));
  Fiber b(work('b'));
  bool a_ended = false;
  bool b_ended = false;
  while (!a_ended || !b_ended) {
    if (!a_ended) a_ended = a.resume(1);
    if (!b_ended) b_ended = b.resume(1);
  }
  EXPECT_EQ(order, "ababab");
}

TEST(Fiber, MayRunInsideAnother) {
  std::string order;
  Fiber outer([&] {
    Fiber inner([&] {
      order += 'i';
      count_work(5);
      order += 'I';
    });
    EXPECT_FALSE(inner.resume(5));
    order += 'o';
    count_work(5);
    EXPECT_TRUE(inner.resume(5));
    order += 'O';
  });
  EXPECT_FALSE(outer.resume(5));
  EXPECT_EQ(order, "io");
  EXPECT_TRUE(outer.resume(5));
  EXPECT_EQ(order, "ioIO");
}

TEST(Fiber, ReleasesWhatItHolds) {
  const auto held = std::make_shared<int>(1);
  {
    Fiber unused([held] { count_work(1); });
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1) << "one that never began";
  bool ended = false;
  {
    Fiber begun([held, &ended] {
      const std::shared_ptr<int> own = held;
      count_work(1);
      ended = own != nullptr;
    });
    EXPECT_FALSE(begun.resume(1));
  }
  EXPECT_TRUE(ended) << "one that has begun runs to its end";
  EXPECT_EQ(held.use_count(), 1);
  Fiber whole([held] {});
  EXPECT_TRUE(whole.resume(1));
  EXPECT_EQ(held.use_count(), 1) << "with the end, not with the fiber";
}

/// The depth of a stack of 8 MiB, as the main thread has.
std::size_t descend(std::size_t left) {
  volatile char frame[4096] = {};
  frame[0] = static_cast<char>(left);
  if (left == 0) return 0;
  return descend(left - 1) + 1 + static_cast<std::size_t>(frame[1]);
}

TEST(Fiber, HasAStackAsDeepAsAThreads) {
  std::size_t depth = 0;
  Fiber fiber([&] { depth = descend(1'000); });
  EXPECT_TRUE(fiber.resume(1));
  EXPECT_EQ(depth, 1'000u);
}

}  // namespace
}  // namespace spillway
