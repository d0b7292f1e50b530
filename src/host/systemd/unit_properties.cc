#include "host/systemd/unit_properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace spillway::host {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kMicrosPerSecond = 1'000'000;
// systemd takes quotas in hundredths of a processor; rounded down they would be less than requested.
constexpr std::int64_t kQuotaStepMicros = 10'000;

std::uint64_t unsigned_of(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

std::uint64_t quota_per_second(const CgroupLimits& limits) {
  if (*limits.cpu_quota_micros < 0) return kNoLimit;
  const std::int64_t micros = *limits.cpu_quota_micros * kMicrosPerSecond / limits.cpu_period_micros;
  return unsigned_of((micros + kQuotaStepMicros - 1) / kQuotaStepMicros * kQuotaStepMicros);
}

}  // namespace

UnitProperties slice_properties(const cgroups::SliceUnit& unit, CgroupVersion version) {
  const bool v2 = version == CgroupVersion::kV2;
  return {{"Description", fmt::format("Pods of a Kubernetes node: {}", unit.name)},
          {"Wants", std::vector<std::string>{unit.parent}},
          {"MemoryAccounting", true},
          {"CPUAccounting", true},
          {v2 ? "IOAccounting" : "BlockIOAccounting", true},
          {"TasksAccounting", true},
          {"DefaultDependencies", false}};
}

UnitProperties limit_properties(const CgroupLimits& limits, CgroupVersion version) {
  const bool v2 = version == CgroupVersion::kV2;
  UnitProperties made;
  if (limits.memory) made.push_back({v2 ? "MemoryMax" : "MemoryLimit", unsigned_of(limits.memory->count())});
  if (limits.memory && v2 && limits.swap != Swap::kLeftAsItIs)
    made.push_back({"MemorySwapMax", limits.swap == Swap::kAllowed ? kNoLimit : std::uint64_t{0}});
  if (limits.memory_min && v2) made.push_back({"MemoryMin", unsigned_of(limits.memory_min->count())});
  if (limits.cpu_shares)
    made.push_back(
        {v2 ? "CPUWeight" : "CPUShares", unsigned_of(v2 ? cpu_weight_of(*limits.cpu_shares) : *limits.cpu_shares)});
  if (limits.cpu_quota_micros) {
    made.push_back({"CPUQuotaPerSecUSec", quota_per_second(limits)});
    made.push_back({"CPUQuotaPeriodUSec", unsigned_of(limits.cpu_period_micros)});
  }
  if (limits.pids) made.push_back({"TasksMax", unsigned_of(*limits.pids)});
  return made;
}

}  // namespace spillway::host
