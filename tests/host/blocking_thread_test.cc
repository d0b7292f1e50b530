#include "base/unique_fd.h"
#include "host/disk/fs_probe.h"
#include "host/kernel/blocking_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <semaphore>
#include <vector>

namespace spillway::host {
namespace {

/// A job that hangs until something is written into it.
struct Hang {
  Hang() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read_end = std::make_shared<UniqueFd>(ends[0]);
    write_end.reset(ends[1]);
  }

  BlockingThread::Job job(std::function<void()> after) const {
    return [fd = read_end, begun = begun, after = std::move(after)]() -> runtime::Loop::Task {
      char byte = 0;
      begun->release();
      static_cast<void>(!::read(fd->get(), &byte, 1));
      return [after] { after(); };
    };
  }

  void release() const { EXPECT_EQ(::write(write_end.get(), "x", 1), 1); }

  std::shared_ptr<std::binary_semaphore> begun = std::make_shared<std::binary_semaphore>(0);
  std::shared_ptr<UniqueFd> read_end;
  UniqueFd write_end;
};

TEST(BlockingThread, RunsJobsInOrderAndTheirEndsOnTheLoop) {
  runtime::Loop loop;
  std::vector<int> done;
  BlockingThread thread(loop, 10);
  for (const int number : {1, 2, 3})
    ASSERT_TRUE(thread.submit([&, number]() -> runtime::Loop::Task {
      return [&, number] {
        done.push_back(number);
        if (number == 3) loop.stop();
      };
    }));
  EXPECT_TRUE(done.empty());
  loop.run({});
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(BlockingThread, AHangingJobHoldsBackNothingButItsOwnQueue) {
  runtime::Loop loop;
  BlockingThread thread(loop, 1);
  const Hang hang;
  bool ended = false;
  ASSERT_TRUE(thread.submit(hang.job([&] { ended = true; })));
  ASSERT_TRUE(thread.submit([&]() -> runtime::Loop::Task { return [&] { loop.stop(); }; }));
  EXPECT_FALSE(thread.submit([]() -> runtime::Loop::Task { return {}; })) << "the queue is full";
  EXPECT_TRUE(thread.busy());
  bool turned = false;
  loop.at(loop.now().mono + milliseconds(5), [&] {
    turned = !ended;
    hang.release();
  });
  loop.run({});
  EXPECT_TRUE(turned);
  EXPECT_TRUE(ended);
}

TEST(BlockingThread, AJobThatNeverEndsIsAbandoned) {
  const Hang hang;
  bool ended = false;
  {
    runtime::Loop loop;
    BlockingThread thread(loop, 1);
    ASSERT_TRUE(thread.submit(hang.job([&] { ended = true; })));
    hang.begun->acquire();
  }
  hang.release();
  EXPECT_FALSE(ended);
}

TEST(BlockingThreads, RunAsManyJobsAtOnceAsTheyAreAndTheOthersAfterThem) {
  runtime::Loop loop;
  BlockingThreads threads(loop, 2, 1);
  const Hang first;
  const Hang second;
  int ended = 0;
  ASSERT_TRUE(threads.submit(first.job([&] { ++ended; })));
  ASSERT_TRUE(threads.submit(second.job([&] { ++ended; })));
  first.begun->acquire();
  second.begun->acquire();  // beside the first, which has not ended
  ASSERT_TRUE(threads.submit([&]() -> runtime::Loop::Task {
    return [&] {
      EXPECT_EQ(ended, 1) << "it needs no more than one that is free";
      first.release();
    };
  }));
  EXPECT_FALSE(threads.submit([]() -> runtime::Loop::Task { return {}; })) << "the queue is full";
  second.release();
  std::function<void()> check = [&] {
    if (ended == 2) return loop.stop();
    loop.at(loop.now().mono + milliseconds(1), [&] { check(); });
  };
  check();
  loop.run({});
}

TEST(BlockingThreads, OneIsAQueue) {
  runtime::Loop loop;
  BlockingThreads threads(loop, 0, 10);
  std::vector<int> done;
  for (const int number : {1, 2, 3})
    ASSERT_TRUE(threads.submit([&, number]() -> runtime::Loop::Task {
      return [&, number] {
        done.push_back(number);
        if (number == 3) loop.stop();
      };
    }));
  loop.run({});
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(FsProbe, KnowsSizesOnceAsked) {
  runtime::Loop loop;
  FsProbe probe(loop, "/");
  EXPECT_FALSE(probe.latest(loop.now().mono));
  probe.refresh();
  std::function<void()> check = [&] {
    if (probe.latest(loop.now().mono)) return loop.stop();
    loop.at(loop.now().mono + milliseconds(1), [&] { check(); });
  };
  check();
  loop.run({});
  const std::optional<api::FsStats> stats = probe.latest(loop.now().mono);
  ASSERT_TRUE(stats);
  EXPECT_GT(*stats->capacity_bytes, 0U);
  EXPECT_TRUE(stats->time);
  EXPECT_FALSE(probe.latest(loop.now().mono + minutes(3))) << "a file system that hangs has no size";
}

TEST(FsProbe, AFileSystemThatHangsDelaysNoCaller) {
  runtime::Loop loop;
  const auto hung = std::make_shared<std::binary_semaphore>(0);
  int asked = 0;
  FsProbe probe(loop, "/mnt/dead", [hung, &asked](const std::string&) -> Result<api::FsStats> {
    ++asked;
    hung->acquire();
    api::FsStats stats;
    stats.available_bytes = 7;
    return stats;
  });
  for (int i = 0; i < 10; ++i) probe.refresh();  // each refresh returns, and starts no new call
  bool turned = false;
  loop.post([&] {
    turned = true;
    loop.stop();
  });
  loop.run({});
  EXPECT_TRUE(turned) << "the loop goes on";
  EXPECT_FALSE(probe.latest(loop.now().mono)) << "unknown, not zero";

  hung->release();
  std::function<void()> check = [&] {
    if (probe.latest(loop.now().mono)) return loop.stop();
    loop.at(loop.now().mono + milliseconds(1), [&] { check(); });
  };
  check();
  loop.run({});
  EXPECT_EQ(probe.latest(loop.now().mono)->available_bytes, 7u);
  EXPECT_EQ(asked, 1);
}

/// A machine under load runs the probe's thread late: the answer of that call shows the disk as it was when the call
/// began, and a pod that is evicted because of an answer from before the last deletion is evicted in vain.
TEST(FsProbe, ALateAnswerIsAsOldAsItsCall) {
  runtime::Loop loop;
  const auto slow = std::make_shared<std::counting_semaphore<>>(0);
  const auto available = std::make_shared<std::atomic<std::uint64_t>>(1);
  FsProbe probe(loop, "/data", [slow, available](const std::string&) -> Result<api::FsStats> {
    api::FsStats stats;
    stats.available_bytes = available->load();
    slow->acquire();
    return stats;
  });
  const Now begun = loop.now();
  probe.refresh();  // reads 1, and is not answered in time
  std::optional<Now> deleted;
  std::optional<api::FsStats> after;
  const auto turn = begun.mono + milliseconds(5);
  loop.at(turn, [&] {
    available->store(2);
    deleted = loop.now();
    probe.after_reading_since(deleted->mono, [&] {
      after = probe.latest(loop.now().mono);
      loop.stop();
    });
    slow->release(2);
  });
  loop.run({});
  ASSERT_TRUE(after);
  EXPECT_EQ(after->available_bytes, 2u) << "the answer of the first call is from before the deletion";
  EXPECT_GE(*after->time, deleted->wall) << "the moment at which the second call began";
}

TEST(ReadFs, NamesWhatIsMissing) {
  EXPECT_EQ(read_fs("/no/such/directory").error().at, "statfs /no/such/directory");
}

}  // namespace
}  // namespace spillway::host
