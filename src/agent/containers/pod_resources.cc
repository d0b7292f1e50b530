#include "agent/containers/pod_resources.h"

#include "agent/containers/pod_hosts.h"
#include "api/object/pod_requests.h"
#include "policy/admission/sysctls.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::int32_t kGuaranteedScore = -997;
constexpr std::int32_t kBestEffortScore = 1000;
constexpr std::string_view kNodeCriticalClass = "system-node-critical";

const api::Quantity* find(const api::ResourceList& list, std::string_view resource) {
  const auto it = list.find(resource);
  return it == list.end() ? nullptr : &it->second;
}

std::int64_t memory_request(const api::Container& container) {
  const api::Quantity* request = find(container.resources.requests, "memory");
  return request == nullptr ? 0 : request->value();
}

/// The larger the request, the lower.
std::int64_t score_of_request(std::int64_t bytes, Bytes node_memory) {
  return 1000 - (1000 * bytes) / std::max<std::int64_t>(node_memory.count(), 1);
}

std::int64_t smallest_request(const std::vector<api::Container>& containers) {
  std::optional<std::int64_t> smallest;
  for (const api::Container& each : containers) {
    smallest = std::min(smallest.value_or(memory_request(each)), memory_request(each));
  }
  return smallest.value_or(0);
}

/// The part of the pod level's memory request that each container counts on top of its own request.
std::int64_t unclaimed_share(const api::PodSpec& spec) {
  const api::Quantity* whole = api::pod_level_request(spec, "memory");
  if (whole == nullptr) return 0;
  const api::ResourceList claimed = api::aggregate_requests(spec);
  const api::Quantity* sum = find(claimed, "memory");
  const auto containers = static_cast<std::int64_t>(spec.containers.size() + spec.init_containers.size());
  return (whole->value() - (sum == nullptr ? 0 : sum->value())) / std::max<std::int64_t>(containers, 1);
}

bool has_limit(const api::PodSpec& spec, std::string_view resource) {
  const api::Quantity* whole = api::pod_level_limit(spec, resource);
  if (whole != nullptr && !whole->is_zero()) return true;
  for (const auto* list : {&spec.containers, &spec.init_containers}) {
    for (const api::Container& container : *list) {
      const api::Quantity* own = find(container.resources.limits, resource);
      if (own == nullptr || own->is_zero()) return false;
    }
  }
  return true;
}

/// A regular container may have a restart policy as well.
bool is_sidecar_of(const api::PodSpec& spec, const api::Container& container) {
  return api::is_sidecar(container) &&
         std::ranges::any_of(spec.init_containers, [&](const auto& each) { return each.name == container.name; });
}

/// Options that use the spec alone: cgroups are made for the requests of the spec.
api::RequestOptions of_spec() {
  api::RequestOptions options;
  options.features.in_place_pod_vertical_scaling = false;
  return options;
}

template <typename Member>
std::optional<std::int64_t> limit_of_all(const api::Pod& pod, std::string_view resource, Member member) {
  if (!has_limit(pod.spec, resource)) return std::nullopt;
  const api::ResourceList limits = api::effective_limits(pod, of_spec());
  const api::Quantity* total = find(limits, resource);
  return total == nullptr ? std::nullopt : std::optional((total->*member)());
}

}  // namespace

bool has_pod_network(const api::Pod& pod, const MachineInfo& machine) {
  const bool attaches = machine.runs_images || !machine.shared_namespaces.net;
  return attaches && !pod.spec.host_network && !(machine.network_on_request && admission::asks_for_own_network(pod));
}

PodIsolation isolation_of(const api::Pod& pod, const MachineInfo& machine, const std::string& cluster_domain) {
  PodIsolation isolation{.network = machine.network_on_request && admission::asks_for_own_network(pod), .sysctls = {}};
  if (!machine.runs_images && has_pod_network(pod, machine)) isolation.network = true;
  if (machine.confines_pods) {
    isolation.confined = true;
    isolation.ipc = !pod.spec.host_ipc;
    isolation.host_pids = pod.spec.host_pid;
    const auto names = names_of(pod, cluster_domain);
    if (names && !pod.spec.host_network) isolation.hostname = kernel_host_name(pod, *names).value_or(names->host);
  }
  for (const api::Sysctl& sysctl : pod.spec.sysctls) {
    std::string name = admission::normalize_sysctl(sysctl.name);
    isolation.ipc |= admission::sysctl_namespace(name) == admission::SysctlNamespace::kIpc;
    isolation.sysctls.emplace_back(std::move(name), sysctl.value);
  }
  return isolation;
}

CreatePod create_pod_command(const api::Pod& pod) {
  CreatePod command{.uid = pod.metadata.uid,
                    .pod = pod.key(),
                    .qos = api::qos_of(pod),
                    .memory_limit = {},
                    .cpu_limit_milli = limit_of_all(pod, "cpu", &api::Quantity::milli_value),
                    .cpu_request_milli = 0,
                    .pids_max = {},
                    .host_network = pod.spec.host_network,
                    .isolation = {}};
  if (const auto bytes = limit_of_all(pod, "memory", &api::Quantity::value)) command.memory_limit = Bytes{*bytes};
  // best effort: the minimal weights, even with overhead
  if (command.qos == api::QosClass::kBestEffort) return command;
  const api::ResourceList requests = api::effective_requests(pod.spec);
  if (const api::Quantity* cpu = find(requests, "cpu")) command.cpu_request_milli = cpu->milli_value();
  return command;
}

ContainerLimits limits_of(const api::PodSpec& spec, const api::Container& container) {
  ContainerLimits limits;
  const api::Quantity* memory = api::limit_in_force(spec, container, "memory");
  if (memory != nullptr && !memory->is_zero()) limits.memory_limit = memory->bytes();
  const api::Quantity* cpu_limit = api::limit_in_force(spec, container, "cpu");
  if (cpu_limit != nullptr && !cpu_limit->is_zero()) limits.cpu_limit_milli = cpu_limit->milli_value();
  const api::Quantity* cpu_request = find(container.resources.requests, "cpu");
  if (cpu_request == nullptr) cpu_request = cpu_limit;
  if (cpu_request != nullptr) limits.cpu_request_milli = cpu_request->milli_value();
  return limits;
}

std::int32_t oom_score_adj(const api::Pod& pod, const api::Container& container, Bytes node_memory) {
  if (api::is_critical(pod) && pod.spec.priority_class_name == kNodeCriticalClass) return kGuaranteedScore;
  switch (api::qos_of(pod)) {
    case api::QosClass::kGuaranteed:
      return kGuaranteedScore;
    case api::QosClass::kBestEffort:
      return kBestEffortScore;
    case api::QosClass::kBurstable:
      break;
  }
  const std::int64_t share = unclaimed_share(pod.spec);
  std::int64_t score = score_of_request(memory_request(container) + share, node_memory);
  if (is_sidecar_of(pod.spec, container)) {
    score = std::min(score, score_of_request(smallest_request(pod.spec.containers) + share, node_memory));
  }
  if (score == kBestEffortScore) --score;
  return static_cast<std::int32_t>(std::max<std::int64_t>(score, 1000 + kGuaranteedScore));
}

}  // namespace spillway::agent
