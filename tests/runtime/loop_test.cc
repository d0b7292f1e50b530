// The loop: order of posted tasks and timers, descriptors, fairness, signals, stopping.
#include "runtime/loop.h"

#include "runtime/clock.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace spillway::runtime {
namespace {

/// A counter for which a loop can wait.
class EventFd {
 public:
  EventFd() = default;

  ~EventFd() { ::close(fd_); }

  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  int fd() const { return fd_; }

  void ring() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

  void take() const {
    std::uint64_t count = 0;
    ASSERT_EQ(::read(fd_, &count, sizeof count), static_cast<ssize_t>(sizeof count));
  }

 private:
  int fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST(Loop, RunsPostedTasksInOrder) {
  Loop loop;
  std::string seen;
  loop.post([&] {
    seen += 'a';
    loop.post([&] {
      seen += 'c';
      loop.stop();
    });
  });
  loop.post([&] { seen += 'b'; });
  loop.run({});
  EXPECT_EQ(seen, "abc");
}

TEST(Loop, RunsTimersByDueThenByOrderOfSetting) {
  Loop loop;
  std::string seen;
  const Instant now = loop.now().mono;
  loop.at(now + milliseconds(3), [&] {
    seen += 'd';
    loop.stop();
  });
  loop.at(now + milliseconds(1), [&] { seen += 'b'; });
  loop.at(now + milliseconds(1), [&] { seen += 'c'; });
  loop.at(now - seconds(1), [&] { seen += 'a'; });
  loop.run({});
  EXPECT_EQ(seen, "abcd");
}

TEST(Loop, TimerRunsAtOrAfterItsInstant) {
  Loop loop;
  const Instant due = loop.now().mono + microseconds(1500);
  std::optional<Instant> ran;
  loop.at(due, [&] {
    ran = loop.now().mono;
    loop.stop();
  });
  loop.run({});
  ASSERT_TRUE(ran);
  EXPECT_GE(*ran, due);
}

TEST(Loop, CancelledTimerDoesNotRun) {
  Loop loop;
  bool ran = false;
  const Instant now = loop.now().mono;
  const Loop::TimerId first = loop.at(now, [&] { ran = true; });
  const Loop::TimerId second = loop.at(now + milliseconds(1), [&] { ran = true; });
  loop.at(now, [&] { loop.cancel(second); });
  loop.cancel(first);
  loop.cancel(first);
  loop.at(now + milliseconds(2), [&] { loop.stop(); });
  loop.run({});
  EXPECT_FALSE(ran);
}

TEST(Loop, TheEndOfATurnIsBehindItsTasksAndIsNotWaitedFor) {
  Loop loop;
  std::string seen;
  loop.at_end_of_turn([&] {
    seen += '1';
    loop.at_end_of_turn([&] {  // in the next turn, for which nothing else is left
      seen += '2';
      loop.stop();
    });
  });
  loop.post([&] {
    seen += 'a';
    loop.at_end_of_turn([&] { seen += 'x'; });
  });
  loop.post([&] { seen += 'b'; });
  loop.run({});
  EXPECT_EQ(seen, "ab1x2");
}

TEST(Loop, TakesTasksFromOtherThreads) {
  Loop loop;
  constexpr int kThreads = 4;
  constexpr int kTasks = 500;
  std::vector<int> next_of(kThreads, 0);
  int left = kThreads * kTasks;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        loop.post([&, t, i] {
          EXPECT_EQ(next_of[static_cast<std::size_t>(t)]++, i);
          if (--left == 0) loop.stop();
        });
      }
    });
  }
  loop.run({});
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 0);
}

TEST(Loop, KnowsTheThreadThatRunsIt) {
  Loop loop;
  EXPECT_TRUE(loop.is_ours()) << "before it runs, objects are made on any thread";
  bool in_task = false;
  bool elsewhere = true;
  loop.post([&] {
    in_task = loop.is_ours();
    std::thread([&] { elsewhere = loop.is_ours(); }).join();
    loop.stop();
  });
  loop.run({});
  EXPECT_TRUE(in_task);
  EXPECT_FALSE(elsewhere);
  std::thread([&] { elsewhere = loop.is_ours(); }).join();
  EXPECT_TRUE(elsewhere) << "afterwards they are destroyed on any thread";
}

#ifndef NDEBUG
TEST(LoopDeathTest, IsNotToBeUsedOnAnotherThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Loop loop;
        loop.post([&loop] {
          std::thread([&loop] { loop.at(loop.now().mono, [] {}); }).join();
          loop.stop();
        });
        loop.run({});
      },
      "is_ours");
}
#endif

TEST(Loop, CallsBackWhileADescriptorIsReady) {
  Loop loop;
  const EventFd event;
  int calls = 0;
  loop.watch_fd(event.fd(), POLLIN, [&] {
    if (++calls < 3) return;  // level-triggered: the event is repeated until it is consumed
    event.take();
    loop.unwatch_fd(event.fd());
    event.ring();  // no callback is left to call
    loop.at(loop.now().mono + milliseconds(2), [&] { loop.stop(); });
  });
  event.ring();
  loop.run({});
  EXPECT_EQ(calls, 3);
}

TEST(Loop, DescriptorUnwatchedInTheSameTurnIsNotReported) {
  Loop loop;
  const EventFd a;
  const EventFd b;
  int calls = 0;
  const auto ready = [&](int other) {
    ++calls;
    loop.unwatch_fd(a.fd());
    loop.unwatch_fd(b.fd());
    loop.unwatch_fd(other);  // harmless
    loop.post([&] { loop.stop(); });
  };
  loop.watch_fd(a.fd(), POLLIN, [&] { ready(b.fd()); });
  loop.watch_fd(b.fd(), POLLIN, [&] { ready(a.fd()); });
  a.ring();
  b.ring();
  loop.run({});
  EXPECT_EQ(calls, 1);
}

TEST(Loop, DescriptorCanBeWatchedAgain) {
  Loop loop;
  const EventFd event;
  std::string seen;
  loop.watch_fd(event.fd(), POLLIN, [&] {
    seen += 'a';
    loop.unwatch_fd(event.fd());
    loop.watch_fd(event.fd(), POLLIN, [&] {
      seen += 'b';
      event.take();
      loop.stop();
    });
  });
  event.ring();
  loop.run({});
  EXPECT_EQ(seen, "ab");
}

TEST(Loop, FloodOfTasksDoesNotHoldBackADescriptor) {
  Loop loop;
  const EventFd event;
  constexpr int kFlood = 100'000;
  int ran = 0;
  int ran_when_ready = -1;
  loop.watch_fd(event.fd(), POLLIN, [&] {
    event.take();
    ran_when_ready = ran;
    loop.stop();
  });
  for (int i = 0; i < kFlood; ++i) {
    loop.post([&] {
      if (++ran == 10) event.ring();
    });
  }
  loop.run({});
  ASSERT_GE(ran_when_ready, 10);
  EXPECT_LT(ran_when_ready, 1000);
}

TEST(Loop, SignalsArriveOnTheLoop) {
  Loop loop;
  std::vector<int> seen;
  loop.post([] { ::raise(SIGTERM); });
  loop.run([&](int signal) {
    seen.push_back(signal);
    if (seen.size() == 1) {
      ::raise(SIGINT);
    } else {
      loop.stop();
    }
  });
  EXPECT_EQ(seen, (std::vector<int>{SIGTERM, SIGINT}));
  struct sigaction now{};
  ASSERT_EQ(::sigaction(SIGTERM, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL) << "the handler outlived run()";
}

TEST(Loop, ASignalDuringTheLastTurnIsReported) {
  Loop loop;
  std::vector<int> seen;
  loop.post([&] {
    loop.stop();
    ::raise(SIGTERM);
  });
  loop.run([&](int signal) { seen.push_back(signal); });
  EXPECT_EQ(seen, std::vector<int>{SIGTERM});
  loop.post([&] { loop.stop(); });
  loop.run([&](int signal) { seen.push_back(signal); });
  EXPECT_EQ(seen.size(), 1u) << "it is told once";
}

TEST(Loop, StopBeforeRunReturnsAtOnce) {
  Loop loop;
  bool ran = false;
  loop.post([&] { ran = true; });
  loop.stop();
  loop.run({});
  EXPECT_FALSE(ran);
  loop.post([&] { loop.stop(); });
  loop.run({});
  EXPECT_TRUE(ran) << "what was left queued runs in the next run()";
}

TEST(Loop, DestroysTasksThatNeverRan) {
  const auto token = std::make_shared<int>(0);
  {
    Loop loop;
    loop.post([token] {});
    loop.at(loop.now().mono + hours(1), [token] {});
    EXPECT_EQ(token.use_count(), 3);
  }
  EXPECT_EQ(token.use_count(), 1);
}

/// Keeps the loop busy for that long.
void spin(Duration busy) {
  for (const Instant end = RealClock::read_mono() + busy; RealClock::read_mono() < end;) {
  }
}

TEST(LoopTurns, AreReportedWithWhatTookLongest) {
  Loop loop;
  std::vector<Loop::Turn> turns;
  loop.on_turn([&](const Loop::Turn& turn) { turns.push_back(turn); });
  auto found = turns.end();
  for (int tries = 0; tries < 100 && found == turns.end(); ++tries) {  // a thread may be held up in the short one
    turns.clear();
    loop.post([&] { loop.mark("short"); });
    loop.post([&] {
      loop.mark("long");
      spin(milliseconds(3));
    });
    loop.post([&] { loop.stop(); });
    loop.run({});
    found = std::ranges::find(turns, "long", &Loop::Turn::what);
  }
  ASSERT_NE(found, turns.end());
  EXPECT_GE(found->longest, milliseconds(3));
  EXPECT_GE(found->took, found->longest);
}

TEST(LoopTurns, EndWhenTheirShareIsUsedUp) {
  Loop loop;
  int turns = 0;
  int done = 0;
  loop.on_turn([&](const Loop::Turn&) { ++turns; });
  constexpr int kTasks = 10;
  for (int i = 0; i < kTasks; ++i) {
    loop.post([&] {
      spin(Loop::kShareOfTurn);
      if (++done == kTasks) loop.stop();
    });
  }
  loop.run({});
  EXPECT_EQ(turns, kTasks) << "a task that uses up the share is the last of its turn";
}

}  // namespace
}  // namespace spillway::runtime
