#include "host/cgroup/cgroup_limits.h"

#include "base/number.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

namespace spillway::host {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// The number in a cgroup's file; "max" is kNoLimit, "-1" stays.
std::optional<std::int64_t> number_in(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text == "max") return kNoLimit;
  return parse_whole<std::int64_t>(text);
}

Outcome apply_memory(const CgroupDir& cgroup, Bytes memory, Swap swap) {
  const bool v2 = cgroup.version() == CgroupVersion::kV2;
  const std::string text = v2 && memory == kUnlimitedMemory ? "max" : fmt::format("{}", memory.count());
  if (swap == Swap::kLeftAsItIs)
    return cgroup.write(Controller::kMemory, v2 ? "memory.max" : "memory.limit_in_bytes", text);
  if (v2) {
    SPILLWAY_TRY_VOID(cgroup.write(Controller::kMemory, "memory.max", text));
    ignored(cgroup.write(Controller::kMemory, "memory.swap.max", swap == Swap::kAllowed ? "max" : "0"),
            "no swap accounting in this kernel");
    return {};
  }
  ignored(cgroup.write(Controller::kMemory, "memory.memsw.limit_in_bytes", "-1"), "no swap accounting");
  SPILLWAY_TRY_VOID(cgroup.write(Controller::kMemory, "memory.limit_in_bytes", text));
  ignored(cgroup.write(Controller::kMemory, "memory.memsw.limit_in_bytes", text), "no swap accounting");
  return {};
}

Outcome apply_cpu(const CgroupDir& cgroup, const CgroupLimits& limits) {
  const bool v2 = cgroup.version() == CgroupVersion::kV2;
  if (limits.cpu_shares) {
    const std::string text = fmt::format("{}", v2 ? cpu_weight_of(*limits.cpu_shares) : *limits.cpu_shares);
    SPILLWAY_TRY_VOID(cgroup.write(Controller::kCpu, v2 ? "cpu.weight" : "cpu.shares", text));
  }
  if (!limits.cpu_quota_micros) return {};
  if (v2) {
    const std::string quota = *limits.cpu_quota_micros < 0 ? "max" : fmt::format("{}", *limits.cpu_quota_micros);
    return cgroup.write(Controller::kCpu, "cpu.max", fmt::format("{} {}", quota, limits.cpu_period_micros));
  }
  SPILLWAY_TRY_VOID(cgroup.write(Controller::kCpu, "cpu.cfs_period_us", fmt::format("{}", limits.cpu_period_micros)));
  return cgroup.write(Controller::kCpu, "cpu.cfs_quota_us", fmt::format("{}", *limits.cpu_quota_micros));
}

Outcome apply_huge_pages(const CgroupDir& cgroup, const std::map<std::int64_t, Bytes>& huge_pages) {
  const std::string_view what = cgroup.version() == CgroupVersion::kV2 ? "max" : "limit_in_bytes";
  for (const auto& [page_size, limit] : huge_pages) {
    const std::string file = fmt::format("hugetlb.{}.{}", huge_page_size_text(page_size), what);
    SPILLWAY_TRY_VOID(cgroup.write(Controller::kHugetlb, file, fmt::format("{}", limit.count())));
  }
  return {};
}

}  // namespace

std::string huge_page_size_text(std::int64_t page_size_bytes) {
  std::int64_t size = page_size_bytes;
  std::string_view unit = "B";
  for (const std::string_view larger : {"KB", "MB", "GB"}) {
    if (size < 1024 || size % 1024 != 0) break;
    size /= 1024;
    unit = larger;
  }
  return fmt::format("{}{}", size, unit);
}

std::int64_t cpu_shares_of(std::int64_t milli) {
  if (milli <= 0) return 2;
  return std::clamp<std::int64_t>(std::min<std::int64_t>(milli, 262'144'000) * 1024 / 1000, 2, 262'144);
}

std::int64_t cpu_weight_of(std::int64_t shares) {
  return 1 + (shares - 2) * 9999 / 262'142;
}

std::optional<std::int64_t> cpu_quota_micros_of(std::int64_t milli, std::int64_t period_micros) {
  if (milli <= 0) return std::nullopt;
  return std::max<std::int64_t>(1000, milli * period_micros / 1000);
}

Outcome apply_cpuset(const CgroupDir& cgroup, std::string_view cpus, std::string_view memory_nodes) {
  if (cpus.empty() && memory_nodes.empty()) return {};
  if (!cgroup.has(Controller::kCpuset)) {
    return invalid(cgroup.path(), "there is no cpuset controller to bind a container to CPUs {}", cpus);
  }
  if (!memory_nodes.empty()) SPILLWAY_TRY_VOID(cgroup.write(Controller::kCpuset, "cpuset.mems", memory_nodes));
  return cpus.empty() ? Outcome() : cgroup.write(Controller::kCpuset, "cpuset.cpus", cpus);
}

std::optional<std::strong_ordering> compare_memory(const CgroupDir& cgroup, Bytes memory) {
  const bool v2 = cgroup.version() == CgroupVersion::kV2;
  const auto text = cgroup.read(Controller::kMemory, v2 ? "memory.max" : "memory.limit_in_bytes");
  const auto present = text ? number_in(*text) : std::nullopt;
  if (!present) return std::nullopt;
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t most = kNoLimit / page * page;  // version 1 shows no limit as this
  const std::int64_t wanted = memory == kUnlimitedMemory ? most : memory.count() / page * page;
  return std::min(*present, most) <=> wanted;
}

std::optional<std::strong_ordering> compare_cpu_quota(const CgroupDir& cgroup, std::int64_t quota_micros,
                                                      std::int64_t period_micros) {
  std::optional<std::int64_t> quota;
  std::optional<std::int64_t> period;
  if (cgroup.version() == CgroupVersion::kV2) {
    const auto text = cgroup.read(Controller::kCpu, "cpu.max");  // "max 100000"
    if (!text || !text->contains(' ')) return std::nullopt;
    quota = number_in(std::string_view(*text).substr(0, text->find(' ')));
    period = number_in(std::string_view(*text).substr(text->find(' ') + 1));
  } else {
    const auto quota_text = cgroup.read(Controller::kCpu, "cpu.cfs_quota_us");
    const auto period_text = cgroup.read(Controller::kCpu, "cpu.cfs_period_us");
    if (quota_text) quota = number_in(*quota_text);
    if (period_text) period = number_in(*period_text);
  }
  if (!quota || !period) return std::nullopt;
  if (*quota < 0) quota = kNoLimit;
  const std::int64_t wanted = quota_micros < 0 ? kNoLimit : quota_micros;
  if (*quota == kNoLimit || wanted == kNoLimit) return *quota <=> wanted;
  const std::strong_ordering share = *quota * period_micros <=> wanted * *period;
  return share == 0 ? *period <=> period_micros : share;
}

std::optional<std::strong_ordering> compare_cpu_shares(const CgroupDir& cgroup, std::int64_t shares) {
  const bool v2 = cgroup.version() == CgroupVersion::kV2;
  const auto text = cgroup.read(Controller::kCpu, v2 ? "cpu.weight" : "cpu.shares");
  const auto present = text ? number_in(*text) : std::nullopt;
  if (!present) return std::nullopt;
  return *present <=> (v2 ? cpu_weight_of(shares) : shares);
}

std::optional<Bytes> memory_used(const CgroupDir& cgroup) {
  const bool v2 = cgroup.version() == CgroupVersion::kV2;
  const auto text = cgroup.read(Controller::kMemory, v2 ? "memory.current" : "memory.usage_in_bytes");
  const auto bytes = text ? number_in(*text) : std::nullopt;
  return bytes ? std::optional(Bytes{*bytes}) : std::nullopt;
}

Outcome apply_limits(const CgroupDir& cgroup, const CgroupLimits& limits) {
  if (limits.memory) SPILLWAY_TRY_VOID(apply_memory(cgroup, *limits.memory, limits.swap));
  if (limits.memory_min && cgroup.version() == CgroupVersion::kV2)
    SPILLWAY_TRY_VOID(cgroup.write(Controller::kMemory, "memory.min", fmt::format("{}", limits.memory_min->count())));
  if (limits.pids && cgroup.has(Controller::kPids))
    SPILLWAY_TRY_VOID(cgroup.write(Controller::kPids, "pids.max", fmt::format("{}", *limits.pids)));
  if (cgroup.has(Controller::kCpu)) SPILLWAY_TRY_VOID(apply_cpu(cgroup, limits));
  if (cgroup.has(Controller::kHugetlb)) SPILLWAY_TRY_VOID(apply_huge_pages(cgroup, limits.huge_pages));
  if (limits.oom_kills_group && cgroup.version() == CgroupVersion::kV2)
    ignored(cgroup.write(Controller::kMemory, "memory.oom.group", "1"), "kernel before 4.19");
  return {};
}

}  // namespace spillway::host
