#include "policy/admission/chain.h"

#include "policy/admission/apparmor.h"
#include "policy/admission/pressure.h"
#include "policy/declared_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace spillway::admission {

namespace {

/// Predicates of the pod on the node with all other pods.
Answer ask_predicates(const NodeSituation& node, const api::Pod& pod, std::span<const api::Pod* const> active) {
  if (node.node == nullptr) {
    return refuse("InvalidNodeInfo", "Kubelet cannot get node info.", {policy::ReasonCode::kNodeUnknown, {}});
  }
  policy::NodeLoad load(node.node);
  for (const api::Pod* other : active) {
    if (other->metadata.uid != pod.metadata.uid) load.add_unscored(*other, node.features.pod);
  }
  PredicateNode seen{.load = load,
                     .operating_system = node.operating_system,
                     .devices_in_use = {},
                     .features = node.features,
                     .preempts = node.preempts};
  if (node.devices_in_use) seen.devices_in_use = node.devices_in_use(pod);
  return admit_by_predicates(pod, seen, active);
}

Answer ask_features(std::span<const std::string> declared, const api::Pod& pod) {
  const std::string missing = policy::missing_features(policy::features_to_run(pod.spec), declared);
  if (missing.empty()) return {};
  return refuse("PodFeatureUnsupported", fmt::format("Pod requires node features that are not available: {}", missing),
                {policy::ReasonCode::kFeatureMissing, {{"features", missing}}});
}

Answer ask_shutdown(bool shutting_down) {
  if (!shutting_down) return {};
  return refuse("NodeShutdown", "Pod was rejected as the node is shutting down.",
                {policy::ReasonCode::kNodeShuttingDown, {}});
}

/// Merges the next handler's answer into the whole. Victims of an earlier handler are kept, even if this one refuses; a
/// refusal records the handler's name in its reason.
void add(Answer& answer, std::string_view handler, Answer next) {
  if (next.refusal && !next.reasons.empty()) next.reasons.back().facts.push_back({"handler", std::string(handler)});
  answer.refusal = std::move(next.refusal);
  std::ranges::move(next.victims, std::back_inserter(answer.victims));
  if (answer.preemption_signal.empty()) answer.preemption_signal = std::move(next.preemption_signal);
  std::ranges::move(next.reasons, std::back_inserter(answer.reasons));
}

}  // namespace

Answer admit_pod(const NodeSituation& node, const api::Pod& pod, std::span<const api::Pod* const> active) {
  Answer answer;
  add(answer, "eviction", admit_under_pressure(node.conditions, pod));
  HostNamespaces shared = node.shared_namespaces;
  if (node.network_on_request && asks_for_own_network(pod)) shared.net = false;
  if (!answer.refusal) add(answer, "sysctl", node.sysctls.admit(pod.spec, shared));
  if (!answer.refusal && node.allocate) add(answer, "resource-allocation", node.allocate(pod));
  if (!answer.refusal) add(answer, "predicates", ask_predicates(node, pod, active));
  if (!answer.refusal) add(answer, "apparmor", admit_app_armor(pod, node.app_armor_error));
  if (!answer.refusal) add(answer, "features", ask_features(node.declared_features, pod));
  if (!answer.refusal) add(answer, "shutdown", ask_shutdown(node.shutting_down));
  if (!answer.refusal && answer.victims.empty()) answer.reasons.push_back({policy::ReasonCode::kFits, {}});
  return answer;
}

}  // namespace spillway::admission
