#include "policy/quota/usage.h"

#include "api/object/pod_requests.h"
#include "api/text/resource_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace spillway::quota {
namespace {

using api::Quantity;
using api::ResourceList;
using api::ResourceQuota;

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kLimits = "limits.";
constexpr std::string_view kOfClass = ".storageclass.storage.k8s.io/";
constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";
/// Resources that containers state and that are counted as requests and as limits.
constexpr std::array<std::string_view, 3> kComputeResources{"cpu", "ephemeral-storage", "memory"};
/// Core kinds that are also counted by their plain name.
constexpr std::array<std::string_view, 4> kPlainNames{"configmaps", "replicationcontrollers", "resourcequotas",
                                                      "secrets"};

Quantity one() {
  return Quantity::of_units(1);
}

bool is_compute(std::string_view resource) {
  return std::ranges::find(kComputeResources, resource) != kComputeResources.end();
}

/// Upstream's test for a pod that takes room: not over, and not past the end of its grace.
bool takes_room(const api::Pod& pod, WallTime now) {
  if (api::is_terminal(pod)) return false;
  const auto& deletion = pod.metadata.deletion_timestamp;
  const auto& grace = pod.metadata.deletion_grace_period_seconds;
  return !deletion || !grace || now <= *deletion + std::chrono::seconds(*grace);
}

bool concerns_pods(std::string_view amount) {
  if (amount == "pods" || is_compute(amount)) return true;
  if (amount.starts_with("hugepages-")) return true;
  if (amount.starts_with(kLimits)) return is_compute(amount.substr(kLimits.size()));
  if (!amount.starts_with(kRequests)) return false;
  const std::string_view resource = amount.substr(kRequests.size());
  return is_compute(resource) || api::is_hugepage_resource(resource) || api::is_extended_resource(resource);
}

bool concerns_claims(std::string_view amount) {
  if (amount == "persistentvolumeclaims" || amount == "requests.storage") return true;
  const std::size_t at = amount.rfind(kOfClass);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = amount.substr(at + kOfClass.size());
  return rest == "persistentvolumeclaims" || rest == "requests.storage";
}

bool concerns_services(std::string_view amount) {
  return amount == "services" || amount == "services.nodeports" || amount == "services.loadbalancers";
}

bool concerns(const CountedKind& kind, std::string_view amount) {
  if (amount == count_name(kind)) return true;
  if (kind == kPods) return concerns_pods(amount);
  if (kind == kServices) return concerns_services(amount);
  if (kind == kClaims) return concerns_claims(amount);
  return kind.group.empty() && amount == kind.plural && std::ranges::find(kPlainNames, amount) != kPlainNames.end();
}

bool reaches_namespaces(const api::Json* terms, bool weighted) {
  if (terms == nullptr || terms->if_array() == nullptr) return false;
  return std::ranges::any_of(*terms->if_array(), [weighted](const api::Json& each) {
    const api::Json* term = weighted ? each.find("podAffinityTerm") : &each;
    if (term == nullptr) return false;
    const api::Json* selector = term->find("namespaceSelector");
    const api::Json* names = term->find("namespaces");
    return (selector != nullptr && !selector->is_null()) ||
           (names != nullptr && names->if_array() != nullptr && !names->if_array()->empty());
  });
}

bool has_cross_namespace_affinity(const api::Json& affinity) {
  return std::ranges::any_of(std::array{"podAffinity", "podAntiAffinity"}, [&affinity](std::string_view kind) {
    return reaches_namespaces(affinity.at({kind, "requiredDuringSchedulingIgnoredDuringExecution"}), false) ||
           reaches_namespaces(affinity.at({kind, "preferredDuringSchedulingIgnoredDuringExecution"}), true);
  });
}

bool is_of_class(const api::Pod& pod, std::string_view op, const std::vector<std::string>& values) {
  const std::string& name = pod.spec.priority_class_name;
  const bool has = !name.empty();
  const bool listed = has && std::ranges::find(values, name) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "DoesNotExist") return !has;
  return has;
}

bool scope_holds(std::string_view scope, std::string_view op, const std::vector<std::string>& values,
                 const api::Pod& pod) {
  const bool ends = pod.spec.active_deadline_seconds.value_or(-1) >= 0;
  if (scope == ResourceQuota::kTerminating) return ends;
  if (scope == ResourceQuota::kNotTerminating) return !ends;
  if (scope == ResourceQuota::kBestEffort) return api::qos_of(pod) == api::QosClass::kBestEffort;
  if (scope == ResourceQuota::kNotBestEffort) return api::qos_of(pod) != api::QosClass::kBestEffort;
  if (scope == ResourceQuota::kCrossNamespaceAffinity) return has_cross_namespace_affinity(pod.spec.affinity);
  return scope == ResourceQuota::kPriorityClass && is_of_class(pod, op, values);
}

}  // namespace

std::string count_name(const CountedKind& kind) {
  return kind.group.empty() ? fmt::format("count/{}", kind.plural)
                            : fmt::format("count/{}.{}", kind.plural, kind.group);
}

ResourceList usage_of(const api::Pod& pod, WallTime now) {
  ResourceList usage{{count_name(kPods), one()}};
  if (!takes_room(pod, now)) return usage;
  usage.emplace("pods", one());
  for (const auto& [resource, amount] : api::effective_requests(pod, {})) {
    const bool huge = api::is_hugepage_resource(resource);
    if (is_compute(resource) || huge) usage.emplace(resource, amount);
    if (is_compute(resource) || huge || api::is_extended_resource(resource)) {
      usage.emplace(fmt::format("{}{}", kRequests, resource), amount);
    }
  }
  for (const auto& [resource, amount] : api::effective_limits(pod, {})) {
    if (is_compute(resource)) usage.emplace(fmt::format("{}{}", kLimits, resource), amount);
  }
  return usage;
}

ResourceList usage_of(const api::CountedService& service) {
  std::int64_t node_ports = 0;
  const bool balanced = service.type == "LoadBalancer";
  if (service.type == "NodePort" || (balanced && service.allocates_node_ports.value_or(true))) {
    node_ports = static_cast<std::int64_t>(service.ports.size());
  } else if (balanced) {
    node_ports = std::ranges::count_if(service.ports, [](const auto& port) { return port.node_port != 0; });
  }
  return {{count_name(kServices), one()},
          {"services", one()},
          {"services.nodeports", Quantity::of_units(node_ports)},
          {"services.loadbalancers", Quantity::of_units(balanced ? 1 : 0)}};
}

ResourceList usage_of(const api::CountedClaim& claim) {
  ResourceList usage{{count_name(kClaims), one()}, {"persistentvolumeclaims", one()}};
  const auto annotated = claim.metadata.annotations.find(kClassAnnotation);
  const std::string storage_class =
      annotated != claim.metadata.annotations.end() ? annotated->second : claim.storage_class_name.value_or("");
  const std::string of_class = storage_class.empty() ? "" : fmt::format("{}{}", storage_class, kOfClass);
  if (!of_class.empty()) usage.emplace(of_class + "persistentvolumeclaims", one());
  const auto requested = claim.requests.find("storage");
  if (requested == claim.requests.end()) return usage;
  Quantity storage = requested->second;
  if (const auto allocated = claim.allocated.find("storage"); allocated != claim.allocated.end()) {
    storage = std::max(storage, allocated->second);
  }
  storage = storage.rounded_up(0);
  usage.emplace("requests.storage", storage);
  if (!of_class.empty()) usage.emplace(of_class + "requests.storage", storage);
  return usage;
}

ResourceList usage_of(const CountedKind& kind) {
  ResourceList usage{{count_name(kind), one()}};
  if (concerns(kind, kind.plural)) usage.emplace(kind.plural, one());
  return usage;
}

std::vector<std::string_view> concerned(const CountedKind& kind, const ResourceList& amounts) {
  std::vector<std::string_view> names;
  for (const auto& [name, amount] : amounts) {
    if (concerns(kind, name)) names.emplace_back(name);
  }
  return names;
}

bool holds(const api::QuotaScope& scope, const api::Pod& pod) {
  return scope_holds(scope.scope, scope.op, scope.values, pod);
}

bool holds_for(const ResourceQuota& quota, const api::Pod* pod) {
  if (pod == nullptr) return quota.scopes.empty() && quota.scope_expressions.empty();
  return std::ranges::all_of(quota.scopes,
                             [pod](const auto& scope) { return scope_holds(scope, "Exists", {}, *pod); }) &&
         std::ranges::all_of(quota.scope_expressions, [pod](const auto& each) { return holds(each, *pod); });
}

bool matches(const ResourceQuota& quota, const CountedKind& kind, const api::Pod* pod) {
  return !concerned(kind, quota.status.hard).empty() && holds_for(quota, pod);
}

}  // namespace spillway::quota
