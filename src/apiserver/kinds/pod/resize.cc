// The endpoint `resize` of pods: the changes of resources that a pod can follow without being made anew, and whether
// its namespace and its node allow them (plug-ins LimitRanger, NodeDeclaredFeatureValidator, PodResizeValidator).
// Source: Kubernetes docs, "Resize CPU and Memory Resources assigned to Pods"; KEP-1287; vectors api/new_update.
#include "api/codec/codec.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/pod_requests.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/limits/limits.h"
#include "apiserver/kinds/pod/pod.h"
#include "apiserver/kinds/pod/rules.h"
#include "policy/declared_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array<std::string_view, 2> kResizedResources{"cpu", "memory"};
constexpr std::array<std::string_view, 2> kAmounts{"requests", "limits"};
constexpr std::string_view kLinux = "linux";

api::Status resize_forbidden(const api::Json& pod, std::string_view why) {
  return api::forbidden_status({"", "pods"}, pod.string_at({"metadata", "name"}), why);
}

/// The QoS class that the status of the pod states, else the one of its spec.
std::string qos_class_of(const api::Json& pod) {
  const std::string_view stated = text(value_of(pod, "status"), "qosClass");
  if (!stated.empty()) return std::string(stated);
  const auto spec = api::decode<api::PodSpec>(value_of(pod, "spec"));
  return spec ? std::string(api::to_string(api::compute_qos(*spec))) : std::string();
}

void check_class_stays(const CheckedField& spec, const api::Json& old) {
  const auto resized = api::decode<api::PodSpec>(spec.json());
  const std::string before = qos_class_of(old);
  if (!resized || before == api::to_string(api::compute_qos(*resized))) return;
  spec.invalid(before, "Pod QOS Class may not change as a result of resizing");
}

/// The first container that runs shows whether the pod's node reports resources, as every node does that can resize.
bool is_resizing_supported(const api::Json& pod) {
  for (const api::Json& status : elements(value_of(pod, "status"), "containerStatuses")) {
    if (has(value_of(status, "state"), "running")) return has(status, "resources");
  }
  return true;
}

/// False, with an error, if the list does not have the same containers in the same order.
bool check_same_containers(const CheckedField& spec, const api::Json& old, std::string_view list) {
  const CheckedField containers = spec[list];
  const api::Json::Array& before = elements(old, list);
  if (containers.size() != before.size()) {
    containers.forbidden(fmt::format("{} may not be added or removed on resize",
                                     list == "containers" ? "containers" : "initContainers"));
    return false;
  }
  bool same = true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const CheckedField container = containers.at(i);
    const CheckedField name = container["name"];
    if (name.text() == text(before[i], "name")) continue;
    name.forbidden("containers may not be renamed or reordered on resize");
    same = false;
  }
  return same;
}

/// A resource that has a request or limit keeps having one.
void check_none_removed(const CheckedField& resources, const api::Json& before, std::string_view owner) {
  for (const std::string_view list : kAmounts) {
    const api::Json::Object* named = value_of(before, list).if_object();
    const CheckedField amounts = resources[list];
    const auto is_gone = [&](const auto& member) { return !amounts.key(member.key).present(); };
    if (named == nullptr || std::ranges::none_of(*named, is_gone)) continue;
    amounts.forbidden(fmt::format("{} {} cannot be removed", owner, list));
  }
}

/// `resources` with the amounts of cpu and memory that `before` has.
api::Json with_amounts_of(api::Json resources, const api::Json& before) {
  if (!resources.is_object()) resources = api::Json::object();
  for (const std::string_view list : kAmounts) {
    for (const std::string_view name : kResizedResources) {
      const api::Json* amount = before.at({list, name});
      if (amount != nullptr) {
        resources.make({list, name}) = *amount;
      } else {
        resources.erase({list, name});
      }
    }
    const api::Json* left = std::as_const(resources).find(list);
    if (left != nullptr && left->if_object() != nullptr && left->if_object()->empty()) resources.erase({list});
  }
  return resources;
}

/// True if nothing but amounts of cpu and memory differs.
bool differ_in_amounts_only(const api::Json& now, const api::Json& before) {
  return with_amounts_of(now, before) == with_amounts_of(before, before);
}

bool follows_resize(const api::Json& container, const api::Json& before) {
  return differ_in_amounts_only(value_of(container, "resources"), value_of(before, "resources")) &&
         value_of(container, "resizePolicy") == value_of(before, "resizePolicy");
}

bool restarts_on_resize(const api::Json& container) {
  return std::ranges::any_of(elements(container, "resizePolicy"),
                             [](const api::Json& each) { return text(each, "restartPolicy") == "RestartContainer"; });
}

void check_containers_resized(const CheckedField& spec, const api::Json& old) {
  const CheckedField containers = spec["containers"];
  const api::Json::Array& before = elements(old, "containers");
  for (std::size_t i = 0; i < before.size() && !containers.full(); ++i) {
    const CheckedField container = containers.at(i);
    check_none_removed(container["resources"], value_of(before[i], "resources"), "resource");
  }
  const CheckedField init_containers = spec["initContainers"];
  const api::Json::Array& init_before = elements(old, "initContainers");
  for (std::size_t i = 0; i < init_before.size() && !init_containers.full(); ++i) {
    const CheckedField container = init_containers.at(i);
    check_none_removed(container["resources"], value_of(init_before[i], "resources"), "resource");
  }
  for (std::size_t i = 0; i < before.size() && !containers.full(); ++i) {
    const CheckedField container = containers.at(i);
    if (!follows_resize(container.json(), before[i])) spec.forbidden("only cpu and memory resources are mutable");
  }
  for (std::size_t i = 0; i < init_before.size() && !init_containers.full(); ++i) {
    const CheckedField container = init_containers.at(i);
    const bool resized = !(container["resources"].json() == value_of(init_before[i], "resources"));
    if (resized && text(init_before[i], "restartPolicy") != "Always" && restarts_on_resize(init_before[i])) {
      container.forbidden("non-sidecar init containers with a resize policy of RestartContainer cannot be resized");
    }
    if (!follows_resize(container.json(), init_before[i])) {
      container.forbidden("only cpu and memory resources for init or sidecar containers are mutable");
    }
  }
}

void check_whole_pod_resized(const CheckedField& spec, const api::Json& old) {
  const CheckedField resources = spec["resources"];
  const api::Json& before = value_of(old, "resources");
  if (!resources && !before.is_object()) return;
  if (!resources) return resources.forbidden("pod-level resources cannot be removed");
  check_none_removed(resources, before, "pod-level resource");
  if (!differ_in_amounts_only(resources.json(), before)) {
    spec.forbidden("only cpu and memory resources are mutable at pod-level");
  }
}

/// The node of a bound pod has what a change of its spec needs.
api::StatusResult<void> confirm_features(const api::Json& pod, const api::PodSpec& before, const api::PodSpec& after,
                                         const std::optional<api::Json>& node) {
  const std::vector<std::string_view> needed = policy::features_to_update(before, after);
  if (needed.empty()) return {};
  std::vector<std::string> declared;
  if (node) {
    for (const api::Json& each : elements(value_of(*node, "status"), "declaredFeatures")) {
      declared.emplace_back(each.string_at({}));
    }
  }
  const std::string missing = policy::missing_features(needed, declared);
  if (missing.empty()) return {};
  return resize_forbidden(pod, fmt::format("pod update requires features {} which are not available on node \"{}\"",
                                           missing, before.node_name));
}

api::Status refused_for(const api::Json& pod, std::string why, std::string_view cause) {
  api::Status status = resize_forbidden(pod, why);
  status.make_details().causes.push_back({std::string(cause), std::move(why), {}});
  return status;
}

/// The node of a bound pod is there, can resize, and is large enough if nothing else ran there.
api::StatusResult<void> confirm_node(const api::Json& pod, const api::PodSpec& after,
                                     const std::optional<api::Json>& found) {
  const std::string& name = after.node_name;
  if (!found) return resize_forbidden(pod, fmt::format("node \"{}\" not found", name));
  const auto node = api::decode<api::Node>(*found);
  if (!node) return resize_forbidden(pod, fmt::format("node \"{}\" cannot be read: {}", name, node.error().text()));
  const std::string& system = node->status.node_info.operating_system;
  if (!system.empty() && system != kLinux) {
    return refused_for(pod,
                       fmt::format("pod resize is only supported on linux nodes, node \"{}\" is \"{}\"", name, system),
                       "UnsupportedPlatform");
  }
  const api::ResourceList requests = api::effective_requests(after);
  for (const std::string_view resource : kResizedResources) {
    const auto request = requests.find(resource);
    if (request == requests.end()) continue;
    const auto there = node->status.allocatable.find(resource);
    const api::Quantity allocatable = there == node->status.allocatable.end() ? api::Quantity() : there->second;
    if (request->second <= allocatable) continue;
    const auto shown = [&](const api::Quantity& amount) {
      return resource == "cpu" ? amount.milli_value() : amount.value();
    };
    return refused_for(pod,
                       fmt::format("node didn't have enough allocatable resources: {}, requested: {}, allocatable: {}",
                                   resource, shown(request->second), shown(allocatable)),
                       "NodeCapacity");
  }
  return {};
}

}  // namespace

bool check_resizable(const CheckedField& pod, const api::Json& old) {
  const api::Json& annotations = value_of(value_of(old, "metadata"), "annotations");
  if (has(annotations, api::kConfigMirrorAnnotation)) {
    pod.errors().forbidden("[]", "static pods cannot be resized");
    return false;
  }
  if (old.string_at({"spec", "os", "name"}) == "windows") {
    pod.errors().forbidden("[]", "windows pods cannot be resized");
    return false;
  }
  return true;
}

void check_resize(const CheckedField& pod, const api::Json& old) {
  const CheckedField spec = pod["spec"];
  const api::Json& before = value_of(old, "spec");
  check_class_stays(spec, old);
  if (!is_resizing_supported(old)) spec.forbidden("Pod running on node without support for resize");
  const bool same_containers = check_same_containers(spec, before, "containers");
  const bool same_init_containers = check_same_containers(spec, before, "initContainers");
  if (same_containers && same_init_containers) check_containers_resized(spec, before);
  check_whole_pod_resized(spec, before);
}

api::StatusResult<void> confirm_pod_update(const api::Json& pod, const api::Json& old, Endpoint endpoint,
                                           const AdmissionContext& context) {
  if (endpoint != Endpoint::kResize) return {};
  SPILLWAY_TRY_VOID(confirm_pod_limits(pod, context));
  const auto before = api::decode<api::PodSpec>(value_of(old, "spec"));
  const auto after = api::decode<api::PodSpec>(value_of(pod, "spec"));
  if (!before || !after || after->node_name.empty()) return {};
  const std::optional<api::Json> node = context.cluster.find("nodes", "", after->node_name);
  SPILLWAY_TRY_VOID(confirm_features(pod, *before, *after, node));
  return confirm_node(pod, *after, node);
}

}  // namespace spillway::apiserver::kinds
