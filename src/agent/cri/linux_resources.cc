#include "agent/cri/linux_resources.h"

#include "agent/containers/pod_resources.h"
#include "api/object/pod_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::int64_t kCpuPeriodMicroseconds = 100'000;
constexpr std::int64_t kQuotaMin = 1'000;
constexpr std::int64_t kSharesMin = 2;
constexpr std::int64_t kSharesMax = 262'144;

const api::Quantity* find(const api::ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second;
}

api::Quantity amount(const api::ResourceList& list, std::string_view name) {
  const api::Quantity* found = find(list, name);
  return found == nullptr ? api::Quantity() : *found;
}

Json basic(const api::Quantity* cpu_request, const api::Quantity& cpu_limit, const api::Quantity& memory_limit,
           bool cpu_cfs_quota) {
  Json made = Json::object();
  const std::int64_t weighed = (cpu_request != nullptr ? *cpu_request : cpu_limit).milli_value();
  const std::int64_t shares = weighed == 0 ? kSharesMin : weighed * 1024 / 1000;
  made["cpu_shares"] = std::clamp(shares, kSharesMin, kSharesMax);
  if (const std::int64_t bytes = memory_limit.value(); bytes != 0) made["memory_limit_in_bytes"] = bytes;
  if (!cpu_cfs_quota) return made;
  made["cpu_period"] = kCpuPeriodMicroseconds;
  if (const std::int64_t milli = cpu_limit.milli_value(); milli != 0)
    made["cpu_quota"] = std::max(milli * kCpuPeriodMicroseconds / 1000, kQuotaMin);
  return made;
}

/// "2MB" is of the resource "hugepages-2Mi".
Json huge_page_limits(const api::Container& container, const ResourceFacts& facts) {
  Json list = Json::array();
  for (const std::string& size : facts.huge_page_sizes) {
    const std::string unit = size.ends_with('B') ? size.substr(0, size.size() - 1) : size;
    const std::int64_t limit = amount(container.resources.limits, fmt::format("hugepages-{}i", unit)).value();
    Json entry = Json::object({{"page_size", size}});
    if (limit != 0) entry["limit"] = limit;
    list.if_array()->push_back(std::move(entry));
  }
  return list;
}

void forbid_swap(const ResourceFacts& facts, Json& resources) {
  if (facts.cgroup_v2) {
    resources.make({"unified", "memory.swap.max"}) = "0";
  } else if (const Json* limit = resources.find("memory_limit_in_bytes")) {
    resources["memory_swap_limit_in_bytes"] = Json(*limit);
  }
}

/// Only on version 2; what a burstable pod's container may swap is its share of the machine's memory.
std::optional<std::int64_t> limited_swap(const api::Pod& pod, const api::Container& container,
                                         const ResourceFacts& facts) {
  if (!facts.cgroup_v2 || api::is_critical(pod) || facts.swap_behavior != "LimitedSwap") return std::nullopt;
  if (api::qos_of(pod) != api::QosClass::kBurstable) return std::nullopt;
  const api::Quantity request = amount(container.resources.requests, "memory");
  const api::Quantity limit = amount(container.resources.limits, "memory");
  if (request == limit || request.value() > facts.machine_memory.count()) return std::nullopt;
  const double share = static_cast<double>(request.value()) / static_cast<double>(facts.machine_memory.count());
  return static_cast<std::int64_t>(share * static_cast<double>(facts.machine_swap.count()));
}

}  // namespace

Json container_resources(const api::Pod& pod, const api::Container& container, const ResourceFacts& facts) {
  Json made = basic(find(container.resources.requests, "cpu"), amount(container.resources.limits, "cpu"),
                    amount(container.resources.limits, "memory"), facts.cpu_cfs_quota);
  if (const std::int32_t adjusted = oom_score_adj(pod, container, facts.machine_memory); adjusted != 0)
    made["oom_score_adj"] = std::int64_t{adjusted};
  if (!facts.huge_page_sizes.empty()) made["hugepage_limits"] = huge_page_limits(container, facts);
  if (facts.cgroup_v2 && !facts.single_process_oom_kill) made.make({"unified", "memory.oom.group"}) = "1";
  if (!facts.swap_controller) return made;
  if (const auto swap = limited_swap(pod, container, facts)) {
    made.make({"unified", "memory.swap.max"}) = fmt::format("{}", *swap);
  } else {
    forbid_swap(facts, made);
  }
  return made;
}

Json sandbox_resources(const api::Pod& pod, bool cpu_cfs_quota) {
  api::RequestOptions options;
  options.overhead = api::Overhead::kLeftOut;
  const api::ResourceList requests = api::effective_requests(pod, options);
  const api::ResourceList limits = api::effective_limits(pod, options);
  return basic(find(requests, "cpu"), amount(limits, "cpu"), amount(limits, "memory"), cpu_cfs_quota);
}

Json sandbox_overhead(const api::Pod& pod, bool cpu_cfs_quota) {
  if (pod.spec.overhead.empty()) return Json::object();
  const api::Quantity cpu = amount(pod.spec.overhead, "cpu");
  return basic(&cpu, cpu, amount(pod.spec.overhead, "memory"), cpu_cfs_quota);
}

}  // namespace spillway::agent
