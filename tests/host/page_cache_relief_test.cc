// Goal: page cache is read and reclaimed as each version of control groups allows, and a refusal says why.
#include "host/observation/page_cache_relief.h"

#include "host/cgroup/memory_stat.h"
#include "support/fake_cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace spillway::host {
namespace {

constexpr std::string_view kV2 =
    "anon 4096\nfile 12288\nactive_file 8192\ninactive_file 4096\nworkingset_refault_anon 9\n"
    "workingset_refault_file 3\n";
constexpr std::string_view kV1 =
    "cache 1\ninactive_file 1\nactive_file 1\ntotal_inactive_file 100\ntotal_active_file 50\n"
    "total_workingset_refault_file 7\n";

TEST(PageCache, IsReadInBothVersions) {
  EXPECT_EQ(parse_page_cache(CgroupVersion::kV2, kV2), Bytes{12288});
  EXPECT_EQ(parse_page_cache(CgroupVersion::kV1, kV1), Bytes{150});
  EXPECT_EQ(parse_page_cache(CgroupVersion::kV2, "anon 1\n"), std::nullopt) << "absent is not zero";
}

TEST(PageCache, RefaultsAreCountedInPages) {
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  EXPECT_EQ(parse_refaulted(CgroupVersion::kV2, kV2), Bytes{3 * page});
  EXPECT_EQ(parse_refaulted(CgroupVersion::kV1, kV1), Bytes{7 * page});
  EXPECT_EQ(parse_refaulted(CgroupVersion::kV2, "workingset_refault 5\n"), Bytes{5 * page}) << "before Linux 5.9";
  EXPECT_EQ(parse_refaulted(CgroupVersion::kV2, "active_file 5\n"), std::nullopt);
}

TEST(PageCache, IsPartOfAPodsStatistics) {
  MemoryFiles files;
  files.stat = std::string(kV2);
  files.usage = "20000";
  files.limit = "max";
  const auto memory = compute_memory(CgroupVersion::kV2, files, nullptr);
  ASSERT_TRUE(memory) << memory.error().text();
  const api::FileCache cache = to_file_cache(*memory);
  EXPECT_EQ(cache.inactive_bytes, 4096u);
  EXPECT_EQ(cache.active_bytes, 8192u);
  EXPECT_EQ(cache.refaulted_bytes, 3u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  files.stat = "anon 4096\n";
  EXPECT_EQ(to_file_cache(*compute_memory(CgroupVersion::kV2, files, nullptr)).refaulted_bytes, std::nullopt);
}

using support::FakeCgroup;

CgroupDir child_of(const FakeCgroup& fake, const std::string& path) {
  auto found = fake.root().open_path(path);
  EXPECT_TRUE(found) << found.error().text();
  return *std::move(found);
}

TEST(Reclaim, WritesTheAmountAndLeavesAnonymousMemoryAlone) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("pod");
  fake.put(Controller::kMemory, "pod", "memory.stat", kV2);
  fake.put(Controller::kMemory, "pod", "memory.reclaim", "");
  const auto outcome = reclaim_page_cache(child_of(fake, "pod"), {.uid = "u", .bytes = mebibytes(2)});
  EXPECT_EQ(fake.get(Controller::kMemory, "pod", "memory.reclaim"), "2097152 swappiness=0");
  EXPECT_EQ(outcome.uid, "u");
  EXPECT_EQ(outcome.freed, mebibytes(2)) << "the kernel did not say that it was less";
  EXPECT_EQ(outcome.refaulted, Bytes{3 * ::sysconf(_SC_PAGESIZE)});
  EXPECT_EQ(outcome.problem, "");
}

TEST(Reclaim, AKernelWithoutTheFileIsAProblemThatIsNamed) {
  FakeCgroup fake(CgroupVersion::kV2);
  fake.add("pod");
  fake.put(Controller::kMemory, "pod", "memory.stat", kV2);
  const auto outcome = reclaim_page_cache(child_of(fake, "pod"), {.uid = "u", .bytes = mebibytes(2)});
  EXPECT_EQ(outcome.freed, Bytes{});
  EXPECT_TRUE(outcome.problem.contains("memory.reclaim")) << outcome.problem;
}

/// Version 1 gives all of a cgroup's page cache back, or none: only cgroups without a process may lose it.
TEST(Reclaim, EmptiesOnlyCgroupsWithoutProcessesInVersion1) {
  FakeCgroup fake(CgroupVersion::kV1);
  for (const char* name : {"pod", "pod/running", "pod/ended"}) {
    fake.add(name);
    fake.put(Controller::kMemory, name, "memory.stat", kV1);
    fake.put(Controller::kMemory, name, "memory.force_empty", "");
  }
  fake.put(Controller::kMemory, "pod/running", "cgroup.procs", "1\n");
  const auto outcome = reclaim_page_cache(child_of(fake, "pod"), {.uid = "u", .bytes = mebibytes(2)});
  EXPECT_EQ(outcome.problem, "");
  EXPECT_EQ(fake.get(Controller::kMemory, "pod/ended", "memory.force_empty"), "0");
  EXPECT_EQ(fake.get(Controller::kMemory, "pod/running", "memory.force_empty"), "");
  EXPECT_EQ(fake.get(Controller::kMemory, "pod", "memory.force_empty"), "");
  fake.put(Controller::kMemory, "pod/ended", "cgroup.procs", "2\n");
  EXPECT_NE(reclaim_page_cache(child_of(fake, "pod"), {.uid = "u", .bytes = mebibytes(2)}).problem, "");
}

}  // namespace
}  // namespace spillway::host
