#include "policy/scheduling/filter.h"

#include "api/object/node_affinity.h"
#include "api/object/taint.h"
#include "policy/declared_features.h"
#include "policy/fit.h"

#include <array>
#include <utility>

namespace spillway::scheduling {

namespace {

using policy::ReasonCode;

constexpr std::array<std::string_view, 2> kRepelling{api::kNoSchedule, api::kNoExecute};

Refusal refusal(Filter filter, ReasonCode code, std::vector<policy::Fact> facts, std::string text) {
  return {filter, {{policy::Reason{code, std::move(facts)}, std::move(text)}}};
}

std::optional<Refusal> check_unschedulable(const api::Pod& pod, const api::Node& node) {
  if (!node.spec.unschedulable) return std::nullopt;
  const api::Taint cordon{std::string(api::kTaintNodeUnschedulable), "", std::string(api::kNoSchedule), {}};
  if (api::find_untolerated(std::span(&cordon, 1), pod.spec.tolerations, kRepelling) == nullptr) return std::nullopt;
  return refusal(Filter::kNodeUnschedulable, ReasonCode::kNodeUnschedulable, {}, "node(s) were unschedulable");
}

std::optional<Refusal> check_name(const api::Pod& pod, const api::Node& node) {
  if (pod.spec.node_name.empty() || pod.spec.node_name == node.metadata.name) return std::nullopt;
  return refusal(Filter::kNodeName, ReasonCode::kNodeSelectorMismatch, {{"node_name", pod.spec.node_name}},
                 "node(s) didn't match the requested node name");
}

std::optional<Refusal> check_taints(const api::Pod& pod, const api::Node& node) {
  const api::Taint* taint = api::find_untolerated(node.spec.taints, pod.spec.tolerations, kRepelling);
  if (taint == nullptr) return std::nullopt;
  return refusal(Filter::kTaintToleration, ReasonCode::kUntoleratedTaint,
                 {{"key", taint->key}, {"effect", taint->effect}}, "node(s) had untolerated taint(s)");
}

std::optional<Refusal> check_affinity(const PendingPod& pod, const api::Node& node) {
  if (const auto& added = pod.profile->added_affinity.required) {
    const Result<bool> allowed = added->matches(node.metadata);
    if (!allowed || !*allowed) {
      return refusal(Filter::kNodeAffinity, ReasonCode::kNodeSelectorMismatch, {{"added_by", pod.profile->scheduler}},
                     "node(s) didn't match scheduler-enforced node affinity");
    }
  }
  if (!pod.asks_for_nodes) return std::nullopt;
  const Result<bool> matches = pod.required.matches(node.metadata);
  if (matches && *matches) return std::nullopt;
  return refusal(Filter::kNodeAffinity, ReasonCode::kNodeSelectorMismatch, {},
                 "node(s) didn't match Pod's node affinity/selector");
}

std::optional<Refusal> check_ports(const PendingPod& pod, const policy::NodeLoad& node) {
  if (!pod.asks_for_ports || !node.ports.conflicts_with(pod.pod->spec)) return std::nullopt;
  return refusal(Filter::kNodePorts, ReasonCode::kPortConflict, {},
                 "node(s) didn't have free ports for the requested pod ports");
}

std::optional<Refusal> check_resources(const PendingPod& pod, const policy::NodeLoad& load) {
  std::vector<policy::Shortage> shortages = policy::find_shortages(pod.load.requested, load);
  std::erase_if(shortages,
                [&pod](const policy::Shortage& shortage) { return pod.profile->ignored.contains(shortage.resource); });
  if (shortages.empty()) return std::nullopt;
  Refusal result{Filter::kNodeResourcesFit, {}};
  for (const policy::Shortage& shortage : shortages) {
    result.misfits.push_back({policy::reason_of(shortage), policy::shortage_text(shortage)});
  }
  return result;
}

std::optional<Refusal> check_features(const PendingPod& pod, const api::Node& node) {
  const std::string missing = policy::missing_features(pod.features, node.status.declared_features);
  if (missing.empty()) return std::nullopt;
  return refusal(Filter::kNodeDeclaredFeatures, ReasonCode::kFeatureMissing, {{"features", missing}},
                 "node(s) didn't match Pod's required features");
}

bool holds(const api::Node& node, std::string_view type) {
  const api::NodeCondition* condition = api::find_condition(node.status.conditions, type);
  return condition != nullptr && condition->status == "True";
}

Refusal condition_refusal(Filter filter, std::string_view type, std::string text) {
  return refusal(filter, ReasonCode::kNodePressure, {{"condition", std::string(type)}}, std::move(text));
}

std::optional<Refusal> check_condition(const api::Node& node) {
  if (!holds(node, "Ready")) return condition_refusal(Filter::kCheckNodeCondition, "Ready", "node(s) were not ready");
  const api::NodeCondition* network = api::find_condition(node.status.conditions, "NetworkUnavailable");
  if (network == nullptr || network->status == "False") return std::nullopt;
  return condition_refusal(Filter::kCheckNodeCondition, "NetworkUnavailable", "node(s) had unavailable network");
}

std::optional<Refusal> check_pressures(const api::Pod& pod, const api::Node& node) {
  if (holds(node, "MemoryPressure") && api::qos_of(pod) == api::QosClass::kBestEffort) {
    return condition_refusal(Filter::kCheckNodeMemoryPressure, "MemoryPressure", "node(s) had memory pressure");
  }
  if (holds(node, "PIDPressure")) {
    return condition_refusal(Filter::kCheckNodePidPressure, "PIDPressure", "node(s) had pid pressure");
  }
  if (holds(node, "DiskPressure")) {
    return condition_refusal(Filter::kCheckNodeDiskPressure, "DiskPressure", "node(s) had disk pressure");
  }
  return std::nullopt;
}

}  // namespace

bool refuses_by(Filter filter, const PendingPod& pod, const policy::NodeLoad& load) {
  if (filter == Filter::kNodeUnschedulable) return check_unschedulable(*pod.pod, *load.node).has_value();
  if (filter == Filter::kNodeName) return check_name(*pod.pod, *load.node).has_value();
  if (filter == Filter::kTaintToleration) return check_taints(*pod.pod, *load.node).has_value();
  if (filter == Filter::kNodeAffinity) return check_affinity(pod, *load.node).has_value();
  if (filter == Filter::kNodePorts) return check_ports(pod, load).has_value();
  if (filter == Filter::kNodeDeclaredFeatures) return check_features(pod, *load.node).has_value();
  return filter == Filter::kNodeResourcesFit && check_resources(pod, load).has_value();
}

std::optional<Refusal> refuse_pod(const PendingPod& pod, const policy::NodeLoad& load, const VolumeFilter& volumes) {
  const api::Node& node = *load.node;
  const FilterSet left_out = pod.profile->left_out;
  const bool literally = pod.profile->conditions == NodeConditions::kLiterally;
  if (literally) {
    if (auto no = check_condition(node)) return no;
  }
  const auto asks = [left_out](Filter filter) { return !left_out.contains(filter); };
  std::optional<Refusal> no;
  if (asks(Filter::kNodeUnschedulable)) no = check_unschedulable(*pod.pod, node);
  if (!no && asks(Filter::kNodeName)) no = check_name(*pod.pod, node);
  if (!no && asks(Filter::kTaintToleration)) no = check_taints(*pod.pod, node);
  if (!no && asks(Filter::kNodeAffinity)) no = check_affinity(pod, node);
  if (!no && asks(Filter::kNodePorts)) no = check_ports(pod, load);
  if (!no && asks(Filter::kNodeResourcesFit)) no = check_resources(pod, load);
  if (!no && volumes) no = volumes(load, left_out);
  if (!no && asks(Filter::kNodeDeclaredFeatures)) no = check_features(pod, node);
  if (!no && literally) no = check_pressures(*pod.pod, node);
  return no;
}

}  // namespace spillway::scheduling
