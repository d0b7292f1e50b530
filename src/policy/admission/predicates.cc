#include "policy/admission/predicates.h"

#include "api/object/node_affinity.h"
#include "api/object/taint.h"
#include "api/text/resource_names.h"
#include "policy/admission/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

namespace spillway::admission {

namespace {

using policy::ReasonCode;
using policy::Shortage;

constexpr std::string_view kOsLabel = "kubernetes.io/os";

FailedPredicate failed(std::string name, std::string text, policy::Reason reason) {
  return {std::move(name), std::move(text), std::move(reason)};
}

/// True if the node neither lists the resource, if only with zero, nor hands it out.
bool is_unknown(const PredicateNode& node, std::string_view resource) {
  return api::is_extended_resource(resource) && !node.load.allocatable.scalars.contains(resource) &&
         !node.devices_in_use.contains(resource);
}

/// The pod's requests without extended resources that the node does not list. Overhead and requests at the level of the
/// pod are included.
policy::Amounts wanted_by(const api::Pod& pod, const PredicateNode& node) {
  const auto asks_for_unknown = [&](const api::Container& container) {
    return std::ranges::any_of(container.resources.requests,
                               [&](const auto& each) { return is_unknown(node, each.first); });
  };
  if (std::ranges::none_of(pod.spec.containers, asks_for_unknown) &&
      std::ranges::none_of(pod.spec.init_containers, asks_for_unknown)) {
    return policy::requested_by(pod, node.features.pod);
  }
  api::Pod known = pod;
  for (auto* list : {&known.spec.init_containers, &known.spec.containers}) {
    for (api::Container& container : *list) {
      std::erase_if(container.resources.requests, [&](const auto& each) { return is_unknown(node, each.first); });
    }
  }
  return policy::requested_by(known, node.features.pod);
}

std::vector<Shortage> shortages_of(const api::Pod& pod, const PredicateNode& node) {
  const policy::Amounts wanted = wanted_by(pod, node);
  const bool corrected = std::ranges::any_of(node.devices_in_use, [&](const auto& device) {
    const auto listed = node.load.allocatable.scalars.find(device.first);
    return listed == node.load.allocatable.scalars.end() || listed->second < device.second;
  });
  if (!corrected) return policy::find_shortages(wanted, node.load);
  policy::NodeLoad load = node.load;
  for (const auto& [resource, count] : node.devices_in_use) {
    std::int64_t& allocatable = load.allocatable.scalars[resource];
    allocatable = std::max(allocatable, count);
  }
  return policy::find_shortages(wanted, load);
}

/// The node's metadata with its operating system label corrected, as it is for the rest of this admission; a node
/// without any label gets none. nullopt: nothing to correct.
std::optional<api::ObjectMeta> repaired(const api::ObjectMeta& node, std::string_view operating_system) {
  if (node.labels.empty()) return std::nullopt;
  const auto label = node.labels.find(kOsLabel);
  if (label != node.labels.end() && label->second == operating_system) return std::nullopt;
  api::ObjectMeta meta = node;
  meta.labels.insert_or_assign(std::string(kOsLabel), std::string(operating_system));
  return meta;
}

bool matches_selectors(const api::Pod& pod, const PredicateNode& node) {
  const api::RequiredNodeAffinity required = api::required_node_affinity(pod.spec);
  if (required.labels.empty() && !required.selector) return true;
  const api::ObjectMeta& meta = node.load.node->metadata;
  const std::optional<api::ObjectMeta> with_os = repaired(meta, node.operating_system);
  const Result<bool> matches = required.matches(with_os ? *with_os : meta);
  return matches && *matches;
}

Answer refuse_failure(const Failure& failure) {
  if (const auto* shortage = std::get_if<Shortage>(&failure)) {
    return refuse(fmt::format("OutOf{}", shortage->resource),
                  fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                              shortage->resource, shortage->requested, shortage->used, shortage->capacity),
                  policy::reason_of(*shortage));
  }
  const auto& predicate = std::get<FailedPredicate>(failure);
  return refuse(predicate.name, fmt::format("Predicate {} failed: {}", predicate.name, predicate.text),
                predicate.reason);
}

policy::Reason reason_for(const Failure& failure) {
  if (const auto* shortage = std::get_if<Shortage>(&failure)) return policy::reason_of(*shortage);
  return std::get<FailedPredicate>(failure).reason;
}

std::optional<Answer> refuse_operating_system(const api::Pod& pod, std::string_view operating_system) {
  const std::string runs(operating_system);
  if (const auto label = pod.metadata.labels.find(kOsLabel);
      label != pod.metadata.labels.end() && label->second != operating_system) {
    return refuse("PodOSSelectorNodeLabelDoesNotMatch",
                  "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
                  {ReasonCode::kOsMismatch, {{"label", label->second}, {"node_os", runs}}});
  }
  if (pod.spec.os && pod.spec.os->name != operating_system) {
    return refuse("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS",
                  {ReasonCode::kOsMismatch, {{"os", pod.spec.os->name}, {"node_os", runs}}});
  }
  return std::nullopt;
}

/// Groups of an image's user can only be kept away by a container runtime that reports this feature.
bool lacks_groups_policy(const api::Pod& pod, const api::Node& node) {
  if (pod.spec.security.supplemental_groups_policy != "Strict") return false;
  return !node.status.features || !node.status.features->supplemental_groups_policy.value_or(false);
}

}  // namespace

std::vector<Failure> find_failures(const api::Pod& pod, const PredicateNode& node) {
  std::vector<Failure> failures;
  for (Shortage& each : shortages_of(pod, node)) failures.emplace_back(std::move(each));
  if (!matches_selectors(pod, node)) {
    failures.emplace_back(failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector",
                                 {ReasonCode::kNodeSelectorMismatch, {}}));
  }
  const std::string& name = node.load.node->metadata.name;
  if (!pod.spec.node_name.empty() && pod.spec.node_name != name) {
    failures.emplace_back(
        failed("NodeName", "node(s) didn't match the requested node name",
               {ReasonCode::kNodeSelectorMismatch, {{"node_name", pod.spec.node_name}, {"node", name}}}));
  }
  if (node.load.ports.conflicts_with(pod.spec)) {
    failures.emplace_back(failed("NodePorts", "node(s) didn't have free ports for the requested pod ports",
                                 {ReasonCode::kPortConflict, {}}));
  }
  constexpr std::array<std::string_view, 1> kExpelling{api::kNoExecute};
  const api::Taint* taint = api::is_static(pod)
                                ? nullptr
                                : api::find_untolerated(node.load.node->spec.taints, pod.spec.tolerations, kExpelling);
  if (taint != nullptr) {
    failures.emplace_back(failed("TaintToleration", "node(s) had taints that the pod didn't tolerate",
                                 {ReasonCode::kUntoleratedTaint, {{"key", taint->key}, {"effect", taint->effect}}}));
  }
  return failures;
}

Recovery recover(const api::Pod& pod, std::vector<Failure> failures, std::span<const api::Pod* const> active) {
  Recovery recovery;
  if (failures.empty() || !api::is_critical(pod)) {
    recovery.remaining = std::move(failures);
    return recovery;
  }
  std::vector<Requirement> requirements;
  for (const Failure& failure : failures) {
    if (const auto* shortage = std::get_if<Shortage>(&failure)) {
      requirements.push_back({shortage->resource, shortage->requested - (shortage->capacity - shortage->used)});
    } else {
      recovery.remaining.push_back(failure);
    }
  }
  if (!recovery.remaining.empty()) return recovery;
  recovery.preemption_signal = requirements.front().resource;
  const Choice choice = choose_victims(pod, active, std::move(requirements));
  if (!choice.uncovered.empty()) {
    recovery.error =
        fmt::format("preemption: error finding a set of pods to preempt: {}", uncovered_text(choice.uncovered));
  }
  for (const std::size_t victim : choice.victims) {
    const Round& round = *std::ranges::find(choice.rounds, victim, &Round::chosen);
    recovery.victims.push_back({.pod = active[victim]->key(),
                                .uid = active[victim]->metadata.uid,
                                .reason = reason_of(round, active),
                                .candidates = candidates_of(round, active),
                                .candidates_total = static_cast<std::int64_t>(round.distances.size())});
  }
  recovery.reasons = reasons_of(choice);
  return recovery;
}

Answer admit_by_predicates(const api::Pod& pod, const PredicateNode& node, std::span<const api::Pod* const> active) {
  if (std::optional<Answer> no = refuse_operating_system(pod, node.operating_system)) return *std::move(no);
  if (lacks_groups_policy(pod, *node.load.node)) {
    return refuse("SupplementalGroupsPolicyNotSupported",
                  "SupplementalGroupsPolicy=Strict is not supported in this node",
                  {ReasonCode::kFeatureMissing, {{"features", std::string("SupplementalGroupsPolicy")}}});
  }
  if (!node.features.sidecar_containers) {
    const auto sidecar = std::ranges::find_if(pod.spec.init_containers, api::is_sidecar);
    if (sidecar != pod.spec.init_containers.end()) {
      return refuse("InitContainerRestartPolicyForbidden",
                    fmt::format("Init container \"{}\" may not have a non-default restartPolicy", sidecar->name),
                    {ReasonCode::kSidecarForbidden, {{"container", sidecar->name}}});
    }
  }
  std::vector<Failure> failures = find_failures(pod, node);
  if (failures.empty()) return {};
  std::vector<policy::Reason> reasons;
  for (const Failure& failure : failures) reasons.push_back(reason_for(failure));
  Recovery recovery;
  if (node.preempts) {
    recovery = recover(pod, std::move(failures), active);
  } else {
    recovery.remaining = std::move(failures);
  }
  Answer answer;
  if (!recovery.error.empty()) {
    answer.refusal =
        Refusal{"UnexpectedAdmissionError",
                fmt::format("Unexpected error while attempting to recover from admission failure: {}", recovery.error)};
  } else if (!recovery.remaining.empty()) {
    answer = refuse_failure(recovery.remaining.front());
  } else {
    answer.victims = std::move(recovery.victims);
    answer.preemption_signal = std::move(recovery.preemption_signal);
  }
  std::ranges::move(recovery.reasons, std::back_inserter(reasons));
  answer.reasons = std::move(reasons);
  return answer;
}

}  // namespace spillway::admission
