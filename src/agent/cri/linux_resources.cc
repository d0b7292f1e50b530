#include "agent/cri/linux_resources.h"

#include "agent/containers/pod_resources.h"
#include "api/object/pod_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace spillway::agent {
namespace {

using api::Json;

constexpr std::int64_t kQuotaMin = 1'000;
constexpr std::int64_t kSharesMin = 2;
constexpr std::int64_t kSharesMax = 262'144;
constexpr std::string_view kHugePages = "hugepages-";

const api::Quantity* find(const api::ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? nullptr : &found->second;
}

api::Quantity amount(const api::ResourceList& list, std::string_view name) {
  const api::Quantity* found = find(list, name);
  return found == nullptr ? api::Quantity() : *found;
}

/// The limit of a container, or of the whole pod where the container states none.
api::Quantity limit_of(const api::Pod& pod, const api::Container& container, std::string_view resource) {
  const api::Quantity* limit = api::limit_in_force(pod.spec, container, resource);
  return limit == nullptr ? api::Quantity() : *limit;
}

Json basic(const api::Quantity* cpu_request, const api::Quantity& cpu_limit, const api::Quantity& memory_limit,
           const ResourceFacts& facts) {
  Json made = Json::object();
  const std::int64_t weighed = (cpu_request != nullptr ? *cpu_request : cpu_limit).milli_value();
  const std::int64_t shares = weighed == 0 ? kSharesMin : weighed * 1024 / 1000;
  made["cpu_shares"] = std::clamp(shares, kSharesMin, kSharesMax);
  if (const std::int64_t bytes = memory_limit.value(); bytes != 0) made["memory_limit_in_bytes"] = bytes;
  if (!facts.cpu_cfs_quota) return made;
  made["cpu_period"] = facts.cpu_period_micros;
  if (const std::int64_t milli = cpu_limit.milli_value(); milli != 0)
    made["cpu_quota"] = std::max(milli * facts.cpu_period_micros / 1000, kQuotaMin);
  return made;
}

/// "2MB", "64KB": as the kernel's huge page controller names the size.
std::string page_size_text(std::int64_t bytes) {
  std::string_view unit = "B";
  for (const std::string_view larger : {"KB", "MB", "GB", "TB", "PB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return fmt::format("{}{}", bytes, unit);
}

/// The page size in bytes in the name of a resource such as "hugepages-2Mi".
std::optional<std::int64_t> page_size_of(std::string_view resource) {
  if (!resource.starts_with(kHugePages)) return std::nullopt;
  const auto size = api::parse_quantity(resource.substr(kHugePages.size()));
  return size ? std::optional(size->value()) : std::nullopt;
}

/// Limits of the pod level are those of containers that state none for that page size.
Json huge_page_limits(const api::Pod& pod, const api::Container& container, const ResourceFacts& facts) {
  std::map<std::string, std::int64_t> limits;
  for (const auto& [resource, amount] : container.resources.limits) {
    if (const auto size = page_size_of(resource)) limits[page_size_text(*size)] = amount.value();
  }
  if (pod.spec.resources) {
    for (const auto& [resource, amount] : pod.spec.resources->limits) {
      if (const auto size = page_size_of(resource)) limits.try_emplace(page_size_text(*size), amount.value());
    }
  }
  Json list = Json::array();
  for (const std::string& size : facts.huge_page_sizes) {
    Json entry = Json::object({{"page_size", size}});
    if (const std::int64_t limit = limits[size]; limit != 0) entry["limit"] = limit;
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

/// Swap is allowed only on version 2, and only for containers of Burstable pods that request less memory than their
/// limit.
std::optional<std::int64_t> limited_swap(const api::Pod& pod, const api::Container& container,
                                         const ResourceFacts& facts) {
  if (!facts.cgroup_v2 || !facts.node_swap || api::is_critical(pod) || facts.swap_behavior != "LimitedSwap")
    return std::nullopt;
  if (api::qos_of(pod) != api::QosClass::kBurstable) return std::nullopt;
  const api::Quantity request = amount(container.resources.requests, "memory");
  const api::Quantity limit = amount(container.resources.limits, "memory");
  if (request == limit) return std::nullopt;
  const auto share = swap_share(request.value(), facts);
  return share ? std::optional(*share) : std::nullopt;
}

/// Source: KEP-2570. The order of the operations in floating point is upstream's, and shows in the last page.
void add_memory_qos(const api::Container& container, const MemoryQos& qos, Json& resources) {
  const std::int64_t request = amount(container.resources.requests, "memory").value();
  const std::int64_t limit = amount(container.resources.limits, "memory").value();
  if (request != 0) resources.make({"unified", "memory.min"}) = fmt::format("{}", request);
  if (request == limit) return;  // also without either
  const std::int64_t above = limit != 0 ? limit : qos.allocatable.value_or(0);
  if (above == 0) return;
  const double wanted = static_cast<double>(request) +
                        (static_cast<double>(above) - static_cast<double>(request)) * qos.throttling_factor;
  const auto pages = static_cast<std::int64_t>(std::floor(wanted) / static_cast<double>(qos.page_size));
  const std::int64_t high = pages * qos.page_size;
  if (high > request) resources.make({"unified", "memory.high"}) = fmt::format("{}", high);
}

}  // namespace

Json container_resources(const api::Pod& pod, const api::Container& container, const ResourceFacts& facts) {
  Json made = basic(find(container.resources.requests, "cpu"), limit_of(pod, container, "cpu"),
                    limit_of(pod, container, "memory"), facts);
  if (const std::int32_t adjusted = oom_score_adj(pod, container, facts.machine_memory); adjusted != 0)
    made["oom_score_adj"] = std::int64_t{adjusted};
  if (!facts.huge_page_sizes.empty()) made["hugepage_limits"] = huge_page_limits(pod, container, facts);
  if (facts.cgroup_v2 && !facts.single_process_oom_kill) made.make({"unified", "memory.oom.group"}) = "1";
  if (facts.cgroup_v2 && facts.memory_qos) add_memory_qos(container, *facts.memory_qos, made);
  if (!facts.swap_controller) return made;
  if (const auto swap = limited_swap(pod, container, facts)) {
    made.make({"unified", "memory.swap.max"}) = fmt::format("{}", *swap);
  } else {
    forbid_swap(facts, made);
  }
  return made;
}

Result<std::int64_t> swap_share(std::int64_t request_bytes, const ResourceFacts& facts) {
  if (request_bytes > facts.machine_memory.count())
    return invalid({}, "container request {} is larger than total node memory {}", request_bytes,
                   facts.machine_memory.count());
  const double share = static_cast<double>(request_bytes) / static_cast<double>(facts.machine_memory.count());
  return static_cast<std::int64_t>(share * static_cast<double>(facts.machine_swap.count()));
}

std::optional<Bytes> protected_memory(const api::Pod& pod) {
  const std::int64_t bytes = amount(api::effective_requests(pod.spec), "memory").value();
  return bytes > 0 ? std::optional(Bytes{bytes}) : std::nullopt;
}

std::vector<std::string> huge_page_sizes(const std::vector<std::string>& files) {
  constexpr std::string_view kKibibytes = "kB";
  std::vector<std::string> sizes;
  for (std::string_view file : files) {
    if (!file.starts_with(kHugePages) || !file.ends_with(kKibibytes)) continue;
    file.remove_prefix(kHugePages.size());
    file.remove_suffix(kKibibytes.size());
    std::int64_t kibibytes_of_page = 0;
    const auto [end, error] = std::from_chars(file.begin(), file.end(), kibibytes_of_page);
    if (error == std::errc() && end == file.end() && kibibytes_of_page > 0)
      sizes.push_back(page_size_text(kibibytes_of_page * 1024));
  }
  return sizes;
}

std::map<std::int64_t, Bytes> requested_huge_pages(const api::Pod& pod) {
  std::map<std::int64_t, Bytes> pages;
  for (const auto& [resource, requested] : api::effective_requests(pod.spec)) {
    if (const auto size = page_size_of(resource)) pages[*size] = pages[*size] + requested.bytes();
  }
  return pages;
}

Json sandbox_resources(const api::Pod& pod, const ResourceFacts& facts) {
  api::RequestOptions options;
  options.overhead = api::Overhead::kLeftOut;
  options.features.in_place_pod_vertical_scaling = false;  // a sandbox is made for the pod's requests in the spec
  const api::ResourceList requests = api::effective_requests(pod, options);
  const api::ResourceList limits = api::effective_limits(pod, options);
  return basic(find(requests, "cpu"), amount(limits, "cpu"), amount(limits, "memory"), facts);
}

Json sandbox_overhead(const api::Pod& pod, const ResourceFacts& facts) {
  if (pod.spec.overhead.empty()) return Json::object();
  const api::Quantity cpu = amount(pod.spec.overhead, "cpu");
  return basic(&cpu, cpu, amount(pod.spec.overhead, "memory"), facts);
}

}  // namespace spillway::agent
