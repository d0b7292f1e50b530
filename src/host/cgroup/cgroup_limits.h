// Resource limits of a cgroup in both versions' files, and the arithmetic from milli-CPU to shares, weight and quota.
// The arithmetic is pure. Thread: any. Source: spec "Node agent", 9.5; kernel documents "cgroup-v2.rst",
// "sched-bwc.rst".
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

constexpr std::int64_t kCpuPeriodMicros = 100'000;
constexpr std::int64_t kNoCpuQuota = -1;
constexpr Bytes kUnlimitedMemory{-1};  // removes the limit

/// cpu.shares of a request: 1024 per core, in [2, 262144].
std::int64_t cpu_shares_of(std::int64_t milli);
/// cpu.weight for those shares, in [1, 10000].
std::int64_t cpu_weight_of(std::int64_t shares);
/// "2MB", "1GB": how file names of the hugetlb controller spell a page size.
std::string huge_page_size_text(std::int64_t page_size_bytes);
/// Microseconds per period for a limit, at least 1000; nullopt for no limit (0).
std::optional<std::int64_t> cpu_quota_micros_of(std::int64_t milli, std::int64_t period_micros = kCpuPeriodMicros);

/// Swap of a cgroup that gets a memory limit. kAllowed: as much as the cgroups above and below it have (version 2).
enum class Swap { kForbidden, kAllowed, kLeftAsItIs };

/// An absent limit is left unchanged.
struct CgroupLimits {
  std::optional<Bytes> memory;
  Swap swap = Swap::kForbidden;
  std::optional<std::int64_t> pids;
  std::optional<std::int64_t> cpu_shares;
  std::optional<std::int64_t> cpu_quota_micros;  // kNoCpuQuota: no limit
  std::int64_t cpu_period_micros = kCpuPeriodMicros;
  std::optional<Bytes> memory_min = {};           // version 2: memory that is not reclaimed
  std::map<std::int64_t, Bytes> huge_pages = {};  // page size in bytes → limit; without the controller left out
  /// Version 2: an OOM kill takes all processes of the cgroup with it.
  bool oom_kills_group = false;

  friend bool operator==(const CgroupLimits&, const CgroupLimits&) = default;
};

/// Binds the cgroup to CPUs and NUMA nodes; what is empty is left as it is. kInvalid: there is no cpuset controller.
Outcome apply_cpuset(const CgroupDir& cgroup, std::string_view cpus, std::string_view memory_nodes);

/// The order of a limit that the cgroup has to a wanted one: less means that the cgroup allows less. Equal: writing the
/// wanted limit changes nothing. nullopt: the cgroup's limit cannot be read. `memory`: kUnlimitedMemory is no limit;
/// `quota_micros`: kNoCpuQuota is no limit.
std::optional<std::strong_ordering> compare_memory(const CgroupDir& cgroup, Bytes memory);
std::optional<std::strong_ordering> compare_cpu_quota(const CgroupDir& cgroup, std::int64_t quota_micros,
                                                      std::int64_t period_micros);
std::optional<std::strong_ordering> compare_cpu_shares(const CgroupDir& cgroup, std::int64_t shares);

/// Memory that the cgroup uses now, page cache included; nullopt: it cannot be read.
std::optional<Bytes> memory_used(const CgroupDir& cgroup);

/// Memory and pids limits must hold, so failing to set them is an error; so is setting a CPU quota where there is a cpu
/// controller. Without one, CPU limits are left out. `swap` is set together with a memory limit, if the kernel supports
/// it.
Outcome apply_limits(const CgroupDir& cgroup, const CgroupLimits& limits);

}  // namespace spillway::host
