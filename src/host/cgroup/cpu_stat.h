// Consumed processor time of a cgroup and the rate between two samples.
// Pure: no I/O but read_cpu_usage. Thread: any. Source: spec "Node agent", 10.6; vectors node-agent/cpu_stats.
#pragma once

#include "api/object/summary.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::host {

/// Nanoseconds of processor time since the cgroup was made.
struct CpuUsage {
  std::uint64_t total_nanos = 0;
  std::optional<std::uint64_t> user_nanos;
  std::optional<std::uint64_t> system_nanos;

  friend bool operator==(const CpuUsage&, const CpuUsage&) = default;
};

struct CpuSample {
  std::int64_t at_nanos = 0;  // time of the sample; any clock, if both samples use it
  CpuUsage usage;
};

/// Version 1: cpuacct.usage. kInvalid: no number.
Result<CpuUsage> parse_cpuacct_usage(std::string_view text);
/// Version 2: cpu.stat. kInvalid: usage_usec missing or malformed.
Result<CpuUsage> parse_cpu_stat(std::string_view text);

/// Nano-cores between two samples. kInvalid: time did not advance, or a counter went backwards.
Result<std::uint64_t> compute_cpu_rate(const CpuSample& earlier, const CpuSample& later);

Result<CpuUsage> read_cpu_usage(const CgroupDir& cgroup);

}  // namespace spillway::host
