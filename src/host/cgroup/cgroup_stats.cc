#include "host/cgroup/cgroup_stats.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::host {
namespace {

HeldFile try_hold(const CgroupDir& cgroup, Controller controller, const std::string& file) {
  const int directory = cgroup.fd(controller);
  if (directory < 0) return {};
  Result<HeldFile> held = HeldFile::open_at(directory, file);
  return held ? *std::move(held) : HeldFile();
}

}  // namespace

CgroupStats::CgroupStats(const CgroupDir& cgroup)
    : v1_(cgroup.version() == CgroupVersion::kV1),
      usage_(try_hold(cgroup, Controller::kMemory, v1_ ? "memory.usage_in_bytes" : "memory.current")),
      stat_(try_hold(cgroup, Controller::kMemory, "memory.stat")),
      limit_(try_hold(cgroup, Controller::kMemory, v1_ ? "memory.limit_in_bytes" : "memory.max")),
      cpu_(try_hold(cgroup, Controller::kCpuacct, v1_ ? "cpuacct.usage" : "cpu.stat")) {
  if (!v1_) return;
  Result<std::string> text = cgroup.read(Controller::kMemory, "memory.use_hierarchy");
  if (text) use_hierarchy_ = *std::move(text);
}

bool CgroupStats::is_stale() const {
  std::array<char, 64> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  return usage_ && !usage_.read(buffer.data(), buffer.size());
}

Result<std::string> CgroupStats::read(const HeldFile& held, const CgroupDir& cgroup, Controller controller,
                                      const std::string& file) const {
  if (held) {
    std::array<char, 16'384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const Result<std::string_view> text = held.read(buffer.data(), buffer.size());
    if (text) return std::string(*text);
  }
  return cgroup.read(controller, file);
}

Result<CgroupMemory> CgroupStats::memory(const CgroupDir& cgroup) const {
  MemoryFiles files;
  SPILLWAY_TRY(usage, read(usage_, cgroup, Controller::kMemory, v1_ ? "memory.usage_in_bytes" : "memory.current"));
  SPILLWAY_TRY(stat, read(stat_, cgroup, Controller::kMemory, "memory.stat"));
  SPILLWAY_TRY(limit, read(limit_, cgroup, Controller::kMemory, v1_ ? "memory.limit_in_bytes" : "memory.max"));
  files.usage = std::move(usage);
  files.stat = std::move(stat);
  files.limit = std::move(limit);
  files.use_hierarchy = use_hierarchy_;
  return compute_memory(cgroup.version(), files, nullptr);
}

Result<CpuUsage> CgroupStats::cpu(const CgroupDir& cgroup) const {
  SPILLWAY_TRY(text, read(cpu_, cgroup, Controller::kCpuacct, v1_ ? "cpuacct.usage" : "cpu.stat"));
  return v1_ ? parse_cpuacct_usage(text) : parse_cpu_stat(text);
}

Result<std::uint64_t> CgroupStats::processes(const CgroupDir& cgroup) {
  SPILLWAY_TRY(text, cgroup.read(Controller::kMemory, "cgroup.procs"));
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

}  // namespace spillway::host
