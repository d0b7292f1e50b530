// Many containers that live briefly: the last they wrote is in their logs, and nothing of them stays open.
#include "base/unique_fd.h"
#include "host/real_machine.h"
#include "support/patience.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace spillway::host {
namespace {

using agent::ContainerExited;
using agent::ContainerStartFailed;
using agent::PodStopped;

/// A machine that refuses supervisors.
struct ContainerExits : RealMachine {
  ContainerExits() { keeps_pods_ = false; }
};

std::ptrdiff_t open_descriptors() {
  return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"));
}

/// The end of a process and the end of its output are separate events: nothing is lost in either order.
TEST_F(ContainerExits, TheLastLineOfTwoHundredIsInTheirLogs) {
  constexpr std::int32_t kContainers = 200;
  constexpr std::int32_t kAtOnce = 20;
  create_pod("u1");
  for (std::int32_t first = 0; first < kContainers; first += kAtOnce) {
    for (std::int32_t i = first; i < first + kAtOnce; ++i) {
      // Scripts that fill their pipe, write to both streams at the very end, or end without a line end.
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
    EXPECT_TRUE(log.contains(i % 4 == 2 ? " P the last line\n" : " F the last line\n"))
        << i << ": " << log.substr(log.size() - std::min<std::size_t>(log.size(), 200));
    if (i % 4 == 0) {
      EXPECT_EQ(std::ranges::count(log, '\n'), 9'001) << i;
    }
  }
}

/// The letter that /proc shows for a process; 0: it is not there. Read without running the loop.
char state_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '\0' : line[name_end + 2];
}

bool becomes(pid_t pid, char state) {
  const auto give_up = std::chrono::steady_clock::now() + support::kPatience;
  while (state_of(pid) != state) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

/// More than one turn of the loop reads is in the pipe when the end of the process is noticed.
TEST_F(ContainerExits, AFullPipeIsReadToItsEndAfterTheProcess) {
  constexpr int kBytes = 900'000;
  create_pod("u1");
  start("u1", "c",
        {"/bin/sh", "-c",
         fmt::format("kill -STOP $$; head -c {} /dev/zero | tr '\\0' x; echo; echo the last line", kBytes)});
  const auto started = wait_for<agent::ContainerStarted>("u1", "c");
  ASSERT_TRUE(started);
  const auto pid = static_cast<pid_t>(started->pid);
  ASSERT_TRUE(becomes(pid, 'T'));
  {
    const UniqueFd pipe(::open(fmt::format("/proc/{}/fd/1", pid).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    ASSERT_TRUE(pipe) << std::strerror(errno);
    ASSERT_GE(::fcntl(pipe.get(), F_SETPIPE_SZ, 1 << 20), 1 << 20) << std::strerror(errno);
  }
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
  ASSERT_TRUE(becomes(pid, 'Z'));
  ASSERT_TRUE(wait_for<ContainerExited>("u1", "c"));
  const std::string log = log_text("u1", "c");
  EXPECT_EQ(std::ranges::count(log, 'x'), kBytes);
  EXPECT_TRUE(log.ends_with(" F the last line\n")) << log.substr(log.size() - std::min<std::size_t>(log.size(), 200));
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
  live_through("first", 10);  // files that are opened once and kept
  std::ptrdiff_t before = 0;
  int calm = 0;  // checks, a millisecond apart, without a change
  run_until([&] {
    const std::ptrdiff_t seen = open_descriptors();
    calm = seen == before ? calm + 1 : 0;
    before = seen;
    return calm > 100;
  });
  live_through("u1", 100);
  std::ptrdiff_t after = 0;
  EXPECT_TRUE(run_until([&] {
    after = open_descriptors();
    return after <= before;
  })) << before
      << " were open before, " << after << " afterwards";
}

}  // namespace
}  // namespace spillway::host
