#include "host/cgroup/cgroup_kill.h"
#include "host/real_machine.h"
#include "host/spawn/process_spawn.h"
#include "support/patience.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace spillway::host {
namespace {

class NodeSliceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = no_cgroups_reason();
    if (!reason.empty()) GTEST_SKIP() << "real cgroups are needed: " << reason;
  }

  static CgroupDir root() { return *find_writable_root(*read_cgroup_mounts()); }

  NodeSliceOptions options() const { return {.instance = instance_, .node = "n1", .memory = mebibytes(64)}; }

  std::string instance_ = unique_instance();
};

TEST_F(NodeSliceTest, MakesTheKubeletsTreeAndRemovesIt) {
  Result<NodeSlice> slice = NodeSlice::create(root(), options());
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_EQ(slice->slice().path(), root().path() + "/spillway/" + instance_ + "/n1");
  EXPECT_EQ(slice->parent_of(api::QosClass::kGuaranteed).path(), slice->slice().path() + "/kubepods");
  EXPECT_EQ(slice->parent_of(api::QosClass::kBurstable).path(), slice->slice().path() + "/kubepods/burstable");
  EXPECT_EQ(slice->parent_of(api::QosClass::kBestEffort).path(), slice->slice().path() + "/kubepods/besteffort");
  const bool v1 = slice->slice().version() == CgroupVersion::kV1;
  EXPECT_EQ(*slice->slice().read(Controller::kMemory, v1 ? "memory.limit_in_bytes" : "memory.max"), "67108864\n");
  ASSERT_TRUE(slice->remove());
  const Result<CgroupDir> folder = root().open_child("spillway");
  EXPECT_TRUE(!folder || !folder->open_child(instance_));
}

TEST_F(NodeSliceTest, TwoProcessesCannotHaveTheSameNode) {
  Result<NodeSlice> first = NodeSlice::create(root(), options());
  ASSERT_TRUE(first) << first.error().text();
  const Result<NodeSlice> second = NodeSlice::create(root(), options());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(second.error().message.contains("is run by another process")) << second.error().message;
  EXPECT_TRUE(first->slice().children()->size() == 1U);
  NodeSliceOptions other = options();
  other.node = "n2";
  Result<NodeSlice> neighbour = NodeSlice::create(root(), other);
  EXPECT_TRUE(neighbour) << neighbour.error().text();
  ASSERT_TRUE(first->remove());
  ASSERT_TRUE(neighbour->remove());
}

/// The lock of a killed agent is released with the last process that it had begun to make.
TEST_F(NodeSliceTest, WaitsForTheLockOfAProcessThatIsGoing) {
  std::optional<Result<NodeSlice>> first = NodeSlice::create(root(), options());
  ASSERT_TRUE(*first) << (*first).error().text();
  NodeSliceOptions patient = options();
  patient.lock_patience = [&] {
    first.reset();
    return true;
  };
  Result<NodeSlice> second = NodeSlice::create(root(), patient);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_FALSE(first);
  ASSERT_TRUE(second->remove());
}

/// A slice with a process in it, as a killed agent leaves it behind.
pid_t abandon(NodeSliceOptions options, const CgroupDir& root, bool supervised = true) {
  const pid_t agent = ::fork();
  if (agent == 0) {
    Result<NodeSlice> slice = NodeSlice::create(CgroupDir(*find_writable_root(*read_cgroup_mounts())), options);
    if (!slice) ::_exit(1);
    if (supervised && !slice->slice().create_child(std::string(kSupervisorsFolder))) ::_exit(1);
    const Result<CgroupDir> pod = slice->parent_of(api::QosClass::kBestEffort).create_child("podx");
    const int null = ::open("/dev/null", O_WRONLY);
    SpawnPlan plan{.argv = {"sleep", "1000"}, .environment = {"PATH=/bin:/usr/bin"}, .working_dir = "/"};
    plan.cgroup = &*pod;
    plan.stdout_fd = plan.stderr_fd = null;
    const Result<SpawnedProcess> sleeper = spawn(plan);
    while (sleeper && !read_start_report(plan, sleeper->status.get())) {
    }
    ::_exit(sleeper ? 0 : 1);  // the lock is released, the cgroups stay
  }
  int status = 0;
  ::waitpid(agent, &status, 0);
  const Result<CgroupDir> instance = root.open_child("spillway")->open_child(options.instance);
  const std::vector<pid_t> left = tree_pids(*instance).value_or(std::vector<pid_t>());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && left.size() == 1 ? left[0] : -1;
}

TEST_F(NodeSliceTest, LeftoversOfADeadProcessAreClearedByItsSuccessor) {
  ASSERT_GT(abandon(options(), root()), 0);
  Result<NodeSlice> slice = NodeSlice::create(root(), options());
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_TRUE(tree_pids(slice->slice())->empty());
  EXPECT_TRUE(slice->parent_of(api::QosClass::kBestEffort).children()->empty());
  ASSERT_TRUE(slice->remove());
}

TEST_F(NodeSliceTest, CgroupsThatAreNotTakenOverAreEnded) {
  EXPECT_TRUE(end_left_nodes(root(), instance_, support::kPatience)) << "there is nothing";
  const pid_t sleeper = abandon(options(), root());
  ASSERT_GT(sleeper, 0);
  NodeSliceOptions keeps = options();
  keeps.leftovers = Leftovers::kKeep;
  std::optional<Result<NodeSlice>> taken = NodeSlice::create(root(), keeps);
  ASSERT_TRUE(*taken) << (*taken).error().text();
  const Outcome refused = end_left_nodes(root(), instance_, support::kPatience);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(*tree_pids((*taken)->slice()), std::vector<pid_t>{sleeper});
  taken.reset();
  EXPECT_TRUE(end_left_nodes(root(), instance_ + "-of-another", support::kPatience));
  EXPECT_EQ(*tree_pids(*root().open_path("spillway/" + instance_)), std::vector<pid_t>{sleeper});
  const Outcome ended = end_left_nodes(root(), instance_, support::kPatience);
  ASSERT_TRUE(ended) << ended.error().text();
  const Result<CgroupDir> folder = root().open_child("spillway");  // a cgroup with a process in it cannot be removed
  EXPECT_TRUE(!folder || !folder->open_child(instance_));
}

TEST_F(NodeSliceTest, PodsOfAContainerRuntimeAreNotEnded) {
  const pid_t sleeper = abandon(options(), root(), false);
  ASSERT_GT(sleeper, 0);
  EXPECT_TRUE(end_left_nodes(root(), instance_, support::kPatience));
  EXPECT_EQ(*tree_pids(*root().open_path("spillway/" + instance_)), std::vector<pid_t>{sleeper});
  Result<NodeSlice> slice = NodeSlice::create(root(), options());  // removes the leftovers
  ASSERT_TRUE(slice) << slice.error().text();
  ASSERT_TRUE(slice->remove());
}

TEST_F(NodeSliceTest, TheWholeHostIsMeasuredAtTheRoot) {
  NodeSliceOptions host = options();
  host.root = NodeRoot::kHost;
  host.memory.reset();
  Result<NodeSlice> slice = NodeSlice::create(root(), host);
  ASSERT_TRUE(slice) << slice.error().text();
  EXPECT_EQ(slice->measured().path(), "");
  EXPECT_GT(slice->memory(), gibibytes(0));
  ASSERT_TRUE(slice->remove());
}

TEST_F(NodeSliceTest, BadNamesAndSizesAreRefused) {
  for (const std::string name : {"", ".", "..", "a/b", "a b", ".hidden"}) {
    NodeSliceOptions bad = options();
    bad.node = name;
    EXPECT_EQ(NodeSlice::create(root(), bad).error().code, ErrorCode::kInvalid) << name;
  }
  NodeSliceOptions small = options();
  small.memory = mebibytes(1);
  EXPECT_EQ(NodeSlice::create(root(), small).error().code, ErrorCode::kInvalid);
  NodeSliceOptions large = options();
  large.memory = gibibytes(1'000'000);
  EXPECT_TRUE(
      NodeSlice::create(root(), large).error().message.starts_with("a node cannot have 976.6Ti on a machine with "));
  NodeSliceOptions whole = options();
  whole.root = NodeRoot::kHost;
  EXPECT_EQ(NodeSlice::create(root(), whole).error().code, ErrorCode::kInvalid) << "the host has no --node-memory";
  small.memory.reset();
  EXPECT_EQ(NodeSlice::create(root(), small).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace spillway::host
