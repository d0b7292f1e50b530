#include "host/cgroup/cpu_stat.h"

#include "host/kernel/kernel_file.h"

#include <array>

namespace spillway::host {

Result<CpuUsage> parse_cpuacct_usage(std::string_view text) {
  const std::optional<std::uint64_t> nanos = parse_number(text);
  if (!nanos) return invalid("cpuacct.usage", "\"{}\" is not a number", text.substr(0, 64));
  return CpuUsage{*nanos, {}, {}};
}

Result<CpuUsage> parse_cpu_stat(std::string_view text) {
  std::optional<std::uint64_t> usage;
  CpuUsage parsed;
  const std::array<std::pair<std::string_view, std::optional<std::uint64_t>*>, 3> wanted = {
      {{"usage_usec ", &usage}, {"user_usec ", &parsed.user_nanos}, {"system_usec ", &parsed.system_nanos}}};
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    for (const auto& [key, slot] : wanted) {
      if (!line.starts_with(key)) continue;
      const std::optional<std::uint64_t> micros = parse_number(line.substr(key.size()));
      if (!micros) return invalid("cpu.stat", "line \"{}\" is not in key value format", line.substr(0, 64));
      *slot = *micros * 1000;
    }
  }
  if (!usage) return invalid("cpu.stat", "usage_usec missing");
  parsed.total_nanos = *usage;
  return parsed;
}

Result<std::uint64_t> compute_cpu_rate(const CpuSample& earlier, const CpuSample& later) {
  if (later.at_nanos <= earlier.at_nanos) return invalid("cpu", "container stats move backwards in time");
  const auto shrank = [](std::optional<std::uint64_t> before, std::optional<std::uint64_t> after) {
    return before && after && *after < *before;
  };
  if (later.usage.total_nanos < earlier.usage.total_nanos || shrank(earlier.usage.user_nanos, later.usage.user_nanos) ||
      shrank(earlier.usage.system_nanos, later.usage.system_nanos))
    return invalid("cpu", "cumulative stats decrease");
  const auto used = static_cast<double>(later.usage.total_nanos - earlier.usage.total_nanos);
  const auto elapsed = static_cast<double>(later.at_nanos - earlier.at_nanos);
  return static_cast<std::uint64_t>(used / elapsed * 1e9);
}

Result<CpuUsage> read_cpu_usage(const CgroupDir& cgroup) {
  if (cgroup.version() == CgroupVersion::kV1) {
    SPILLWAY_TRY(text, cgroup.read(Controller::kCpuacct, "cpuacct.usage"));
    return parse_cpuacct_usage(text);
  }
  SPILLWAY_TRY(text, cgroup.read(Controller::kCpu, "cpu.stat"));
  return parse_cpu_stat(text);
}

}  // namespace spillway::host
