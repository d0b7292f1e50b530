// Text of kernel files: the values of valid text, and that invalid text is refused.
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/cpu_stat.h"
#include "host/cgroup/memory_stat.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/proc_files.h"
#include "host/observation/machine_info.h"
#include "host/observation/net_dev.h"
#include "host/reaction/memory_gauge.h"
#include "host/reaction/psi.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

TEST(ParseNumber, TakesDecimalNumbersAlone) {
  EXPECT_EQ(parse_number("0"), 0U);
  EXPECT_EQ(parse_number(" 42\n"), 42U);
  EXPECT_EQ(parse_number("18446744073709551615"), ~std::uint64_t{0});
  for (const std::string_view text : {"", " ", "-1", "+1", "1x", "x1", "1 2", "0x10", "18446744073709551616", "1.5"})
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
}

TEST(TakeLine, CutsAtLineEnds) {
  std::string_view text = "one\n\nlast";
  EXPECT_EQ(take_line(text), "one");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "last");
  EXPECT_TRUE(text.empty());
}

constexpr std::string_view kHybrid =
    "23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:4 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(ParseCgroupMounts, HybridIsVersionOneWhereMemoryIs) {
  const Result<CgroupMounts> mounts = parse_cgroup_mounts(kHybrid);
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->version, CgroupVersion::kV1);
  EXPECT_EQ(mounts->unified, "/sys/fs/cgroup/unified");
  const std::map<Controller, std::string> want = {{Controller::kMemory, "/sys/fs/cgroup/memory"},
                                                  {Controller::kCpu, "/sys/fs/cgroup/cpu,cpuacct"},
                                                  {Controller::kCpuacct, "/sys/fs/cgroup/cpu,cpuacct"},
                                                  {Controller::kPids, "/sys/fs/cgroup/pids"},
                                                  {Controller::kFreezer, "/sys/fs/cgroup/freezer"}};
  EXPECT_EQ(mounts->v1, want);
}

TEST(ParseCgroupMounts, UnifiedIsVersionTwo) {
  const Result<CgroupMounts> mounts = parse_cgroup_mounts(
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
      "rw,nsdelegate,memory_recursiveprot\n");
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->version, CgroupVersion::kV2);
  EXPECT_EQ(mounts->unified, "/sys/fs/cgroup");
}

TEST(ParseCgroupMounts, HybridWithoutMemoryInVersionOneIsVersionTwo) {
  const Result<CgroupMounts> mounts = parse_cgroup_mounts(
      "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->version, CgroupVersion::kV2);
}

TEST(ParseCgroupMounts, UnescapesMountPoints) {
  const Result<CgroupMounts> mounts = parse_cgroup_mounts("30 23 0:26 / /mnt/a\\040b\\134c rw - cgroup2 cgroup2 rw\n");
  ASSERT_TRUE(mounts);
  EXPECT_EQ(mounts->unified, "/mnt/a b\\c");
}

TEST(ParseCgroupMounts, NothingMountedIsAnError) {
  for (const std::string_view text : {"", "garbage", " - \n - - -\n", "23 1 254:0 / / rw - ext4 /dev/vda rw\n",
                                      "40 31 0:37 / /x rw - cgroup cgroup rw,pids\n"}) {
    const Result<CgroupMounts> mounts = parse_cgroup_mounts(text);
    ASSERT_FALSE(mounts) << text;
    EXPECT_EQ(mounts.error().code, ErrorCode::kNotFound);
  }
}

TEST(ParseUnifiedPath, FindsTheLineOfHierarchyZero) {
  EXPECT_EQ(parse_unified_path("4:memory:/a\n0::/user.slice/x.scope\n"), "/user.slice/x.scope");
  EXPECT_EQ(parse_unified_path("4:memory:/a\n"), "/");
  const std::string_view hybrid = "12:cpu,cpuacct:/c\n4:memory,hugetlb:/m:x\n1:name=systemd:/s\n0::/u\n";
  EXPECT_EQ(parse_memory_path(hybrid, CgroupVersion::kV1), "/m:x");
  EXPECT_EQ(parse_memory_path(hybrid, CgroupVersion::kV2), "/u");
  EXPECT_EQ(parse_memory_path("3:memoryx:/a\nnonsense\n", CgroupVersion::kV1), "/");
}

TEST(ParseMeminfo, ReadsBytes) {
  const Result<MemInfo> info = parse_meminfo(
      "MemTotal:       24683672 kB\nMemFree:  1 kB\nMemAvailable:    2000000 kB\nSwapTotal:       0 kB\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->total_bytes, 24683672ULL * 1024);
  EXPECT_EQ(info->available_bytes, 2000000ULL * 1024);
  EXPECT_EQ(info->swap_total_bytes, 0U);
  EXPECT_EQ(info->swap_free_bytes, std::nullopt);
  for (const std::string_view text : {"MemTotal: x kB\n", "MemTotal:\n", "MemTotal: 99999999999999999999 kB\n",
                                      "MemTotal: 18446744073709551615 kB\n", "MemTotal: -5 kB\n"})
    EXPECT_FALSE(parse_meminfo(text)) << text;
}

TEST(ParseOomKills, FindsTheCounter) {
  EXPECT_EQ(parse_oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"), 2U);
  EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), 7U);
  EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\n"), std::nullopt);
  EXPECT_EQ(parse_oom_kills(""), std::nullopt);
}

TEST(ParsePsi, ReadsBothLines) {
  const Result<Psi> psi = parse_psi(
      "some avg10=1.23 avg60=0.05 avg300=100.00 total=123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
  ASSERT_TRUE(psi);
  EXPECT_EQ(psi->some, (PsiLine{123, 5, 10000, 123456}));
  EXPECT_EQ(psi->full, (PsiLine{0, 0, 0, 7}));
  EXPECT_FALSE(parse_psi("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")->full);
  for (const std::string_view text :
       {"", "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", "some avg10=0.0 avg60=0.00 avg300=0.00 total=0\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00\n", "some avg10=0.00 avg60=0.00 avg300=0.00 total=\n",
        "some avg60=0.00 avg10=0.00 avg300=0.00 total=0\n", "some avg10=-1.00 avg60=0.00 avg300=0.00 total=0\n"})
    EXPECT_FALSE(parse_psi(text)) << text;
}

TEST(ParseCpu, RefusesWhatIsNoNumber) {
  EXPECT_EQ(parse_cpuacct_usage("12\n")->total_nanos, 12U);
  EXPECT_FALSE(parse_cpuacct_usage("\n"));
  EXPECT_EQ(parse_cpu_stat("usage_usec 5\nuser_usec 3\nsystem_usec 2\n"), (CpuUsage{5000, 3000, 2000}));
  EXPECT_FALSE(parse_cpu_stat("user_usec 3\n"));
  EXPECT_FALSE(parse_cpu_stat("usage_usec x\n"));
}

TEST(ParseLoadavg, CountsAllProcesses) {
  EXPECT_EQ(*parse_loadavg_processes("0.00 0.01 0.05 1/180 4711\n"), 180);
  for (const std::string_view text : {"", "0.00 0.01 0.05", "0.00 0.01 0.05 180 4711", "0.00 0.01 0.05 1/x 4711"})
    EXPECT_FALSE(parse_loadavg_processes(text)) << text;
}

TEST(ParsePrettyName, TakesQuotesOff) {
  EXPECT_EQ(parse_pretty_name("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME='A b'\n"), "A b");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=Plain\n"), "Plain");
  EXPECT_EQ(parse_pretty_name("NAME=x\n"), std::nullopt);
}

TEST(ParseDefaultInterface, FindsTheRouteToEverywhere) {
  EXPECT_EQ(parse_default_interface("Iface\tDestination\tGateway\nlo\t0000007F\t0\neth1\t00000000\t0102A8C0\n"),
            "eth1");
  EXPECT_EQ(parse_default_interface("Iface\tDestination\tGateway\n"), std::nullopt);
  EXPECT_EQ(parse_default_interface(""), std::nullopt);
  EXPECT_EQ(architecture_name("x86_64"), "amd64");
  EXPECT_EQ(architecture_name("aarch64"), "arm64");
  EXPECT_EQ(architecture_name("riscv64"), "riscv64");
}

TEST(EstimateFromMeminfo, IsTheResultOfKubeletsFormula) {
  const Result<MemoryReading> reading = estimate_from_meminfo(
      "MemTotal: 1000 kB\nMemFree: 1 kB\nBuffers: 10 kB\nCached: 200 kB\nSwapCached: 5 kB\nInactive(file): 150 kB\n"
      "AnonPages: 300 kB\n");
  ASSERT_TRUE(reading) << reading.error().text();
  EXPECT_EQ(reading->available, kibibytes(1000 - (300 + 200 + 10 + 5 - 150)));
  EXPECT_FALSE(estimate_from_meminfo("MemTotal: 1000 kB\n"));
}

TEST(CpuArithmetic, IsTheKubelets) {
  EXPECT_EQ(cpu_shares_of(0), 2);
  EXPECT_EQ(cpu_shares_of(1), 2);
  EXPECT_EQ(cpu_shares_of(1000), 1024);
  EXPECT_EQ(cpu_shares_of(4500), 4608);
  EXPECT_EQ(cpu_shares_of(1'000'000'000), 262'144);
  EXPECT_EQ(cpu_weight_of(2), 1);
  EXPECT_EQ(cpu_weight_of(4608), 176);
  EXPECT_EQ(cpu_weight_of(262'144), 10'000);
  EXPECT_EQ(cpu_quota_micros_of(0), std::nullopt);
  EXPECT_EQ(cpu_quota_micros_of(1), 1000);
  EXPECT_EQ(cpu_quota_micros_of(18), 1800);
  EXPECT_EQ(cpu_quota_micros_of(2101), 210'100);
}

TEST(NetDev, CountsInterfacesOfTheMachineAlone) {
  constexpr std::string_view kText =
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
      "compressed\n"
      "    lo:  100       1    0    0    0     0          0         0      100       1    0    0    0     0       0    "
      "0\n"
      "veth12: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
      "  eth0: 355687931 2 3 4 5 6 7 8 680260 10 11 12 13 14 15 16\n"
      " wlan0:7 0 0 0 0 0 0 0 8 0 0 0 0 0 0 0\n";
  const Result<api::NetworkStats> network = parse_net_dev(kText, WallTime(seconds(5)));
  ASSERT_TRUE(network) << network.error().text();
  ASSERT_EQ(network->interfaces.size(), 2U);
  EXPECT_EQ(network->primary, (api::InterfaceStats{"eth0", 355'687'931, 3, 680'260, 11}));
  EXPECT_EQ(network->interfaces[1], (api::InterfaceStats{"wlan0", 7, 0, 8, 0}));
  EXPECT_EQ(network->time, WallTime(seconds(5)));
}

TEST(NetDev, WithoutEth0ThereIsNoPrimary) {
  const Result<api::NetworkStats> network = parse_net_dev("a\nb\nens3: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n", {});
  ASSERT_TRUE(network);
  EXPECT_EQ(network->primary.name, "");
  EXPECT_EQ(network->interfaces.size(), 1U);
}

TEST(NetDev, RefusesWhatIsMalformed) {
  for (const std::string_view line : {"eth0 1 2 3", "eth0: 1 2 3", "eth0: 1 2 x 4 5 6 7 8 9 10 11 12 13 14 15 16"}) {
    EXPECT_FALSE(parse_net_dev(fmt::format("a\nb\n{}\n", line), {})) << line;
  }
  EXPECT_TRUE(parse_net_dev("", {}));
}

TEST(Uptime, IsReadToTheHundredthOfASecond) {
  EXPECT_EQ(parse_uptime("350735.47 234388.90\n").value(), seconds(350'735) + milliseconds(470));
  for (const std::string_view text : {"", "x", "12", "12.", "12.5 1.0", "-1.00 2", "99999999999999.00 1"}) {
    EXPECT_FALSE(parse_uptime(text)) << text;
  }
}

TEST(PsiStats, AreNanosecondsAndHundredths) {
  const Result<Psi> psi = parse_psi("some avg10=1.50 avg60=0.25 avg300=0.01 total=12\n");
  ASSERT_TRUE(psi);
  const api::PsiStats stats = to_psi_stats(*psi);
  EXPECT_EQ(stats.some, (api::PsiShares{.avg10 = 150, .avg60 = 25, .avg300 = 1, .total_nanos = 12'000}));
  EXPECT_EQ(stats.full, api::PsiShares{}) << "processor pressure of old kernels has no such line";
}

}  // namespace
}  // namespace spillway::host
