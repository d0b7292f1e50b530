// Many containers that live briefly: the last they wrote is in their logs, and nothing of them stays open.
#include "host/real_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace spillway::host {
namespace {

using agent::ContainerExited;
using agent::ContainerStartFailed;
using agent::PodStopped;
using ContainerExits = RealMachine;

std::ptrdiff_t open_descriptors() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"));
}

/// The end of a process and the end of its output are told apart: whichever comes first, nothing is lost.
TEST_F(ContainerExits, TheLastLineOfTwoHundredIsInTheirLogs) {
  constexpr std::int32_t kContainers = 200;
  constexpr std::int32_t kAtOnce = 20;
  create_pod("u1");
  for (std::int32_t first = 0; first < kContainers; first += kAtOnce) {
    for (std::int32_t i = first; i < first + kAtOnce; ++i) {
      // Some fill their pipe, some write to both at the very end, some end without a line end.
      const char* script = i % 4 == 0   ? "seq 1 9000; echo the last line"
                           : i % 4 == 1 ? "echo the last line"
                           : i % 4 == 2 ? "echo first >&2; printf 'the last line'"
                                        : "echo some; echo the last line >&2";
      start("u1", fmt::format("c{}", i), {"/bin/sh", "-c", script});
    }
    const auto ended = static_cast<std::size_t>(first + kAtOnce);
    ASSERT_TRUE(run_until([&] { return count<ContainerExited>() == ended; })) << count<ContainerExited>();
  }
  for (std::int32_t i = 0; i < kContainers; ++i) {
    const std::string log = log_text("u1", fmt::format("c{}", i));
    EXPECT_TRUE(log.contains(" F the last line\n"))
        << i << ": " << log.substr(log.size() - std::min<std::size_t>(log.size(), 200));
    if (i % 4 == 0) {
      EXPECT_EQ(std::ranges::count(log, '\n'), 9'001) << i;
    }
  }
}

TEST_F(ContainerExits, NothingOfAHundredStaysOpen) {
  const auto live_through = [this](const std::string& pod, std::int32_t containers) {
    create_pod(pod);
    for (std::int32_t i = 0; i < containers; ++i) {
      const std::string name = fmt::format("c{}", i);
      if (i % 10 == 9) {
        start(pod, name, {"/no/such/program"});
        EXPECT_TRUE(wait_for<ContainerStartFailed>(pod, name));
      } else if (i % 10 == 8) {
        start(pod, name, {"sleep", "1000"});
        ASSERT_TRUE(wait_for<agent::ContainerStarted>(pod, name));
        runtime_->execute(agent::StopContainer{pod, name, Duration::zero()});
        ASSERT_TRUE(wait_for<ContainerExited>(pod, name));
      } else {
        start(pod, name, {"/bin/sh", "-c", "echo a; echo b >&2"});
        ASSERT_TRUE(wait_for<ContainerExited>(pod, name));
      }
    }
    runtime_->execute(agent::StopPod{pod, Duration::zero()});
    ASSERT_TRUE(wait_for<PodStopped>(pod));
    runtime_->execute(agent::RemovePod{pod});
  };
  live_through("first", 10);  // what is opened once and kept
  std::ptrdiff_t before = 0;
  int calm = 0;  // looks, a millisecond apart, at which nothing had changed
  run_until([&] {
    const std::ptrdiff_t seen = open_descriptors();
    calm = seen == before ? calm + 1 : 0;
    before = seen;
    return calm > 100;
  });
  live_through("u1", 100);
  std::ptrdiff_t after = 0;
  EXPECT_TRUE(run_until(
      [&] {
        after = open_descriptors();
        return after <= before;
      },
      seconds(20)))
      << before << " were open before, " << after << " afterwards";
}

}  // namespace
}  // namespace spillway::host
