// Cgroups in fake trees: which files are read and written in either version.
#include "host/cgroup/cgroup.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/memory_stat.h"
#include "host/cgroup/node_slice.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/reaction/memory_gauge.h"
#include "support/fake_cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>

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

TEST(CgroupLimits, OfHugePagesGoToTheFileOfTheirSize) {
  for (const CgroupVersion version : {CgroupVersion::kV1, CgroupVersion::kV2}) {
    FakeCgroup fake(version, {Controller::kHugetlb});
    fake.add("c");
    const CgroupDir cgroup = *fake.root().open_child("c");
    const Outcome applied =
        apply_limits(cgroup, {.huge_pages = {{mebibytes(2).count(), mebibytes(6)}, {gibibytes(1).count(), Bytes{0}}}});
    ASSERT_TRUE(applied) << applied.error().text();
    const std::string what = version == CgroupVersion::kV1 ? "limit_in_bytes" : "max";
    EXPECT_EQ(fake.get(Controller::kHugetlb, "c", "hugetlb.2MB." + what), "6291456");
    EXPECT_EQ(fake.get(Controller::kHugetlb, "c", "hugetlb.1GB." + what), "0");
  }
}

TEST(CgroupLimits, OfHugePagesAreLeftOutWithoutTheirController) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("c");
  EXPECT_TRUE(apply_limits(*fake.root().open_child("c"), {.huge_pages = {{mebibytes(2).count(), mebibytes(6)}}}));
}

TEST(HugePageSize, IsSpelledAsTheKernelDoes) {
  EXPECT_EQ(huge_page_size_text(mebibytes(2).count()), "2MB");
  EXPECT_EQ(huge_page_size_text(gibibytes(16).count()), "16GB");
  EXPECT_EQ(huge_page_size_text(kibibytes(64).count()), "64KB");
}

TEST_P(CgroupTest, OfDaemonsIsLimitedAndKeepsItsSwap) {
  fake_.add("system.slice");
  const Outcome limited =
      limit_reserved(fake_.root(), "/system.slice", {.memory = mebibytes(64), .pids = 30, .cpu_shares = 512});
  ASSERT_TRUE(limited) << limited.error().text();
  const bool v1 = GetParam() == CgroupVersion::kV1;
  EXPECT_EQ(fake_.get(Controller::kMemory, "system.slice", v1 ? "memory.limit_in_bytes" : "memory.max"), "67108864");
  EXPECT_EQ(fake_.get(Controller::kCpu, "system.slice", v1 ? "cpu.shares" : "cpu.weight"), v1 ? "512" : "20");
  EXPECT_EQ(fake_.get(Controller::kPids, "system.slice", "pids.max"), "30");
  if (!v1) {
    EXPECT_EQ(fake_.get(Controller::kMemory, "system.slice", "memory.swap.max"), "max\n");
  }
}

TEST_P(CgroupTest, OfDaemonsIsNotMade) {
  const Outcome limited = limit_reserved(fake_.root(), "/no/such", {.pids = 30});
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, ErrorCode::kNotFound);
  const std::string wanted = GetParam() == CgroupVersion::kV1
                                 ? "cgroup [\"no\" \"such\"] has some missing paths: "
                                 : "could not read controllers for cgroup [\"no\" \"such\"]: ";
  EXPECT_TRUE(limited.error().message.starts_with(wanted)) << limited.error().message;
  EXPECT_FALSE(fake_.root().open_child("no"));
}

TEST(ReservedCgroupV1, HasToBeWhereverALimitGoes) {
  FakeCgroup fake(CgroupVersion::kV1);
  ASSERT_TRUE(fake.root().create_child("system.slice"));
  const std::string pids = fake.root().file_path(Controller::kPids) + "/system.slice";
  std::filesystem::remove_all(pids);
  const Outcome limited = limit_reserved(fake.root(), "system.slice", {.pids = 30});
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().message, fmt::format("cgroup [\"system.slice\"] has some missing paths: {}", pids));
}

TEST(ReservedCgroupV2, HasToHaveTheControllers) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("system.slice");
  fake.put(Controller::kMemory, "system.slice", "cgroup.controllers", "cpu memory\n");
  const Outcome limited = limit_reserved(fake.root(), "system.slice", {.pids = 30});
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().message, "cgroup [\"system.slice\"] has some missing controllers: pids");
}

TEST(ReservedCgroupV2, IsNotLimitedBelowWhatItUses) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("system.slice");
  fake.put(Controller::kMemory, "system.slice", "memory.current", "100000000\n");
  fake.put(Controller::kMemory, "system.slice", "memory.stat",
           "anon 90000000\nfile 10000000\ninactive_file 10000000\n");
  const Outcome limited = limit_reserved(fake.root(), "system.slice", {.memory = mebibytes(64)});
  ASSERT_FALSE(limited) << "the kernel would end daemons to get below it";
  EXPECT_EQ(limited.error().message, "/system.slice uses 90000000 bytes of memory, more than the limit of 67108864");
  EXPECT_EQ(fake.get(Controller::kMemory, "system.slice", "memory.max"), "max\n");
  EXPECT_TRUE(limit_reserved(fake.root(), "system.slice", {.memory = mebibytes(96)}));
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
