// Cgroups in fake trees: which files are read and written in either version.
#include "host/cgroup/cgroup.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/memory_stat.h"
#include "host/cgroup/node_slice.h"
#include "host/reaction/memory_gauge.h"
#include "support/fake_cgroup.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

using support::FakeCgroup;

class CgroupTest : public ::testing::TestWithParam<CgroupVersion> {
 protected:
  FakeCgroup fake_{GetParam()};
};

TEST_P(CgroupTest, ChildrenAreMadeOpenedListedAndRemovedInEveryHierarchy) {
  const CgroupDir root = fake_.root();
  const Result<CgroupDir> child = root.create_child("a");
  ASSERT_TRUE(child) << child.error().text();
  EXPECT_EQ(child->path(), "/a");
  EXPECT_TRUE(child->is_child_of(root));
  EXPECT_TRUE(root.create_child("a")) << "making it again opens it";
  EXPECT_EQ(*root.children(), std::vector<std::string>{"a"});
  EXPECT_TRUE(root.remove_child("a"));
  EXPECT_TRUE(root.remove_child("a")) << "nothing to remove is fine";
  EXPECT_FALSE(child->is_child_of(root));
  EXPECT_EQ(root.open_child("a").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(root.create_child("a"));
  EXPECT_FALSE(child->is_child_of(root)) << "a namesake is not the cgroup we hold";
}

TEST_P(CgroupTest, NamesThatAreNoNamesAreRefused) {
  for (const std::string name : {"", ".", "..", "a/b"})
    EXPECT_EQ(fake_.root().create_child(name).error().code, ErrorCode::kInvalid) << name;
}

TEST_P(CgroupTest, ALockedCgroupBelongsToItsHolder) {
  const CgroupDir root = fake_.root();
  const Result<CgroupDir> first = root.create_child("a");
  ASSERT_TRUE(first->lock());
  {
    const Result<CgroupDir> second = root.open_child("a");
    EXPECT_EQ(second->lock().error().code, ErrorCode::kConflict);
  }
}

TEST_P(CgroupTest, MissingFilesAreNamed) {
  const Result<std::string> text = fake_.root().read(Controller::kMemory, "memory.nothing");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(text.error().at.ends_with("/memory.nothing")) << text.error().at;
}

INSTANTIATE_TEST_SUITE_P(BothVersions, CgroupTest, ::testing::Values(CgroupVersion::kV1, CgroupVersion::kV2),
                         [](const auto& row) { return row.param == CgroupVersion::kV1 ? "V1" : "V2"; });

TEST(CgroupV2, DelegatesWhatIsAvailable) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.put(Controller::kMemory, "", "cgroup.controllers", "cpu memory\n");
  const Outcome delegated = fake.root().delegate_controllers();
  EXPECT_TRUE(delegated) << delegated.error().text();
  EXPECT_EQ(fake.get(Controller::kMemory, "", "cgroup.subtree_control"), "+cpu") << "the last of memory, cpu";
}

TEST(CgroupV2, DoesNotAskForWhatIsDelegatedAlready) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.put(Controller::kMemory, "", "cgroup.subtree_control", "cpu memory pids\n");
  EXPECT_TRUE(fake.root().delegate_controllers());
  EXPECT_EQ(fake.get(Controller::kMemory, "", "cgroup.subtree_control"), "cpu memory pids\n");
}

TEST(CgroupV2, SaysThatTheMemoryControllerIsMissing) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.put(Controller::kMemory, "", "cgroup.controllers", "cpu pids\n");
  const Outcome delegated = fake.root().delegate_controllers();
  ASSERT_FALSE(delegated);
  EXPECT_EQ(delegated.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(delegated.error().message.contains("the memory controller is not delegated to "))
      << delegated.error().text();
  EXPECT_TRUE(delegated.error().message.contains("\"cpu pids\""));
  EXPECT_FALSE(find_writable_root(fake.mounts()));
}

TEST(CgroupV2, ControllersAreWhatTheDirectorySays) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.put(Controller::kMemory, "", "cgroup.controllers", "memory pids\n");
  EXPECT_TRUE(fake.root().has(Controller::kMemory));
  EXPECT_TRUE(fake.root().has(Controller::kPids));
  EXPECT_FALSE(fake.root().has(Controller::kCpu));
  EXPECT_TRUE(fake.root().has(Controller::kFreezer));
}

TEST(CgroupV2, LimitsGoToItsFiles) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("c");
  const CgroupDir cgroup = *fake.root().open_child("c");
  const Outcome applied = apply_limits(
      cgroup,
      {.memory = mebibytes(64), .pids = 30, .cpu_shares = 4608, .cpu_quota_micros = 50'000, .oom_kills_group = true});
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "memory.max"), "67108864");
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "memory.swap.max"), "0");
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "memory.oom.group"), "1");
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "pids.max"), "30");
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "cpu.weight"), "176");
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "cpu.max"), "50000 100000");
}

TEST(CgroupV2, WithoutCpuControllerCpuLimitsAreLeftOut) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("c");
  fake.put(Controller::kMemory, "c", "cgroup.controllers", "memory pids\n");
  const CgroupDir cgroup = *fake.root().open_child("c");
  EXPECT_TRUE(apply_limits(cgroup, {.cpu_shares = 4608, .cpu_quota_micros = 50'000}));
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "cpu.max"), "max 100000\n");
}

TEST(CgroupV1, LimitsGoToTheHierarchyOfTheirController) {
  FakeCgroup fake(CgroupVersion::kV1);
  fake.add("c");
  const CgroupDir cgroup = *fake.root().open_child("c");
  const Outcome applied =
      apply_limits(cgroup, {.memory = mebibytes(64), .pids = 30, .cpu_shares = 512, .cpu_quota_micros = 50'000});
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(fake.get(Controller::kPids, "c", "pids.max"), "30");
  EXPECT_EQ(fake.get(Controller::kCpu, "c", "cpu.shares"), "512");
  EXPECT_EQ(fake.get(Controller::kCpu, "c", "cpu.cfs_quota_us"), "50000");
}

TEST(CgroupV2, KillIsOneWrite) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("c");
  ASSERT_TRUE(kill_all(*fake.root().open_child("c")));
  EXPECT_EQ(fake.get(Controller::kMemory, "c", "cgroup.kill"), "1");
}

TEST(CgroupV2, EmptyIsWhatEventsSay) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("c");
  const CgroupDir cgroup = *fake.root().open_child("c");
  EXPECT_TRUE(*is_empty(cgroup));
  fake.put(Controller::kMemory, "c", "cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_FALSE(*is_empty(cgroup));
}

TEST(CgroupV2, MemoryIsRead) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.put(Controller::kMemory, "", "memory.current", "1000\n");
  fake.put(Controller::kMemory, "", "memory.max", "5000\n");
  fake.put(Controller::kMemory, "", "memory.stat", "anon 600\nfile 400\ninactive_file 300\n");
  const Result<CgroupMemory> memory = read_memory(fake.root(), nullptr);
  ASSERT_TRUE(memory) << memory.error().text();
  const api::MemoryStats stats = to_memory_stats(*memory, WallTime{});
  EXPECT_EQ(stats.working_set_bytes, 700U);
  EXPECT_EQ(stats.available_bytes, 4300U);
  EXPECT_EQ(stats.rss_bytes, 600U);
}

TEST(ReadMemory, WithoutStatisticsNothingIsFree) {
  FakeCgroup fake(CgroupVersion::kV1);
  std::filesystem::remove(fake.mounts().v1.at(Controller::kMemory) + "/memory.stat");
  const Result<CgroupMemory> memory = read_memory(fake.root(), nullptr);
  ASSERT_FALSE(memory);
  EXPECT_TRUE(memory.error().at.ends_with("/memory.stat"));
}

TEST(CgroupPids, AreTheUnionOfAllHierarchies) {
  FakeCgroup fake(CgroupVersion::kV1);
  fake.put(Controller::kMemory, "", "cgroup.procs", "12\n7\n0\n");
  fake.put(Controller::kPids, "", "cgroup.procs", "7\n90\n");
  EXPECT_EQ(*fake.root().pids(), (std::vector<pid_t>{7, 12, 90}));
}

}  // namespace
}  // namespace spillway::host
