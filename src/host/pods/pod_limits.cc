#include "host/pods/pod_limits.h"

#include "policy/cgroups/qos_reserve.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace spillway::host {
namespace {

bool protects_memory(const agent::ResourceFacts& facts) {
  return facts.cgroup_v2 && facts.memory_qos.has_value();
}

/// Memory that the class may use besides what higher classes have reserved.
std::optional<Bytes> unreserved_memory(api::QosClass qos, std::span<const agent::CreatePod* const> pods,
                                       const agent::QosReserve& reserve) {
  cgroups::RequestedMemory requested;
  for (const agent::CreatePod* each : pods) {
    if (!each->definition || each->qos == api::QosClass::kBestEffort) continue;
    Bytes& sum = each->qos == api::QosClass::kGuaranteed ? requested.guaranteed : requested.burstable;
    sum += agent::protected_memory(*each->definition).value_or(Bytes());
  }
  const auto limits = cgroups::class_memory(reserve.allocatable, requested, reserve.percent);
  if (!limits || qos == api::QosClass::kGuaranteed) return std::nullopt;
  return qos == api::QosClass::kBurstable ? limits->burstable : limits->best_effort;
}

}  // namespace

Swap swap_above_containers(const agent::ResourceFacts& facts) {
  const bool is_limited = facts.cgroup_v2 && facts.node_swap && facts.swap_behavior == "LimitedSwap";
  return is_limited ? Swap::kAllowed : Swap::kForbidden;
}

CgroupLimits pod_limits(const agent::CreatePod& pod, const agent::ResourceFacts& facts) {
  CgroupLimits limits;
  limits.memory = pod.memory_limit;
  limits.swap = swap_above_containers(facts);
  limits.pids = pod.pids_max;
  limits.cpu_shares = cpu_shares_of(pod.qos == api::QosClass::kBestEffort ? 0 : pod.cpu_request_milli);
  if (pod.cpu_limit_milli) {
    limits.cpu_period_micros = facts.cpu_period_micros;
    limits.cpu_quota_micros =
        facts.cpu_cfs_quota ? cpu_quota_micros_of(*pod.cpu_limit_milli, facts.cpu_period_micros) : kNoCpuQuota;
  }
  if (!pod.definition) return limits;
  if (protects_memory(facts)) limits.memory_min = agent::protected_memory(*pod.definition);
  const auto requested = agent::requested_huge_pages(*pod.definition);
  for (const std::int64_t size : facts.huge_page_bytes) limits.huge_pages[size] = Bytes{0};
  for (const auto& [size, bytes] : requested) limits.huge_pages[size] = bytes;
  return limits;
}

CgroupLimits class_limits(api::QosClass qos, std::span<const agent::CreatePod* const> pods,
                          const agent::ResourceFacts& facts) {
  const bool all = qos == api::QosClass::kGuaranteed;
  CgroupLimits limits;
  std::int64_t milli = 0;
  Bytes protected_bytes;
  for (const agent::CreatePod* each : pods) {
    if (each->qos == qos) milli += each->cpu_request_milli;
    const bool counts = each->qos == api::QosClass::kBurstable || (all && each->qos == qos);
    if (!counts || !each->definition || qos == api::QosClass::kBestEffort) continue;
    protected_bytes += agent::protected_memory(*each->definition).value_or(Bytes());
  }
  if (!all) limits.cpu_shares = cpu_shares_of(qos == api::QosClass::kBestEffort ? 0 : milli);
  if (protects_memory(facts) && qos != api::QosClass::kBestEffort) limits.memory_min = protected_bytes;
  if (facts.qos_reserve) {
    limits.memory = unreserved_memory(qos, pods, *facts.qos_reserve);
    limits.swap = Swap::kLeftAsItIs;
  }
  return limits;
}

bool owns_cpus_or_memory(const agent::StartContainer& command) {
  const agent::Cpuset& set = command.cpuset;
  return !set.memory_nodes.empty() || (!set.shares && !set.cpus.empty());
}

bool spare_used_memory(const CgroupDir& cgroup, CgroupLimits& limits) {
  if (!limits.memory) return false;
  const std::optional<Bytes> used = memory_used(cgroup);
  if (!used || *used <= *limits.memory) return false;
  limits.memory = used;
  return true;
}

}  // namespace spillway::host
