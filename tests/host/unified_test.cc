// Version 2 in earnest: on a hybrid machine its hierarchy has no memory controller, but it holds, freezes and kills.
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/node_slice.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"
#include "host/real_machine.h"
#include "host/spawn/process_spawn.h"
#include "support/patience.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <functional>

namespace spillway::host {
namespace {

class UnifiedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<CgroupMounts> mounts = read_cgroup_mounts();
    if (!mounts || mounts->unified.empty()) GTEST_SKIP() << "no cgroup version 2 is mounted";
    Result<CgroupDir> root = CgroupDir::open_root({CgroupVersion::kV2, mounts->unified, {}});
    ASSERT_TRUE(root);
    root_ = *std::move(root);
    Result<CgroupDir> cgroup = root_.create_child(name_);
    if (!cgroup) GTEST_SKIP() << "real cgroups are needed: " << cgroup.error().text();
    cgroup_ = *std::move(cgroup);
  }

  void TearDown() override {
    if (!cgroup_) return;
    const Outcome removed = destroy_tree(root_, name_, support::kPatience);
    EXPECT_TRUE(removed) << removed.error().text();
  }

  Result<SpawnedProcess> run(std::vector<std::string> argv) {
    const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    plan_ = {.argv = std::move(argv), .environment = {"PATH=/usr/bin:/bin"}, .working_dir = "/", .cgroup = &cgroup_};
    plan_.stdout_fd = plan_.stderr_fd = null.get();
    return spawn(plan_);
  }

  StartReport wait_for_start(const SpawnedProcess& process) const {
    pollfd ready{process.status.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, support::kPatienceMs), 1);
    return read_start_report(plan_, process.status.get()).value_or(StartReport{"no report"});
  }

  static std::optional<ProcessEnd> wait_for_end(const SpawnedProcess& process) {
    pollfd ready{process.pidfd.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, support::kPatienceMs), 1);
    return reap(process.pidfd.get()).value_or(std::nullopt);
  }

  static void wait_until(const std::function<bool()>& done) {
    for (int waited_ms = 0; waited_ms < support::kPatienceMs && !done(); waited_ms += 5) ::poll(nullptr, 0, 5);
  }

  std::string name_ = "spillway-" + unique_instance();
  CgroupDir root_;
  CgroupDir cgroup_;
  SpawnPlan plan_;
};

TEST_F(UnifiedTest, ProcessesAreBornInTheirCgroup) {
  const Result<SpawnedProcess> process = run({"sleep", "1000"});
  ASSERT_TRUE(process) << process.error().text();
  EXPECT_EQ(*cgroup_.pids(), std::vector<pid_t>{process->pid}) << "before the program runs";
  EXPECT_EQ(wait_for_start(*process).failure, "");
  EXPECT_FALSE(*is_empty(cgroup_));
  ASSERT_TRUE(kill_all(cgroup_));
  EXPECT_EQ(wait_for_end(*process)->signal, SIGKILL);
}

TEST_F(UnifiedTest, KillTakesTheWholeTree) {
  const Result<SpawnedProcess> process = run({"sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & wait"});
  ASSERT_TRUE(process) << process.error().text();
  EXPECT_EQ(wait_for_start(*process).failure, "");
  wait_until([&] { return cgroup_.pids()->size() >= 3; });
  EXPECT_EQ(tree_pids(cgroup_)->size(), 3U);
  ASSERT_TRUE(kill_all(cgroup_));
  EXPECT_EQ(wait_for_end(*process)->exit_code, 137);
  wait_until([&] { return *is_empty(cgroup_); });
  EXPECT_TRUE(*is_empty(cgroup_));
}

TEST_F(UnifiedTest, AFailedStartSaysWhy) {
  const Result<SpawnedProcess> process = run({"no-such-program"});
  ASSERT_TRUE(process) << process.error().text();
  EXPECT_EQ(wait_for_start(*process).failure, "exec: \"no-such-program\": executable file not found in $PATH");
  EXPECT_EQ(wait_for_end(*process)->exit_code, 127);
}

TEST_F(UnifiedTest, ARemovedCgroupIsEmpty) {
  ASSERT_TRUE(root_.remove_child(name_));
  EXPECT_TRUE(*is_empty(cgroup_));
  EXPECT_TRUE(kill_all(cgroup_)) << "and killing it is no error";
}

TEST_F(UnifiedTest, WithoutMemoryControllerNoNodeCanBeMade) {
  if (cgroup_.has(Controller::kMemory) || root_.has(Controller::kMemory)) GTEST_SKIP() << "it has one here";
  const Result<NodeSlice> slice =
      NodeSlice::create(*CgroupDir::open_root({CgroupVersion::kV2, root_.file_path(Controller::kMemory), {}}),
                        {.instance = unique_instance(), .node = "n1", .memory = mebibytes(64)});
  ASSERT_FALSE(slice);
  EXPECT_TRUE(slice.error().message.contains("the memory controller is not delegated")) << slice.error().text();
}

}  // namespace
}  // namespace spillway::host
