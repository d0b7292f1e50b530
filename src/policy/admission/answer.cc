#include "policy/admission/answer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::admission {

namespace {

/// Reasons that are labels as they are. "TaintToleration" is missing upstream as well.
constexpr std::array<std::string_view, 16> kCounted{"AppArmor",
                                                    "Evicted",
                                                    "InitContainerRestartPolicyForbidden",
                                                    "InvalidNodeInfo",
                                                    "NodeShutdown",
                                                    "OutOfcpu",
                                                    "OutOfephemeral-storage",
                                                    "OutOfmemory",
                                                    "OutOfpods",
                                                    "PodOSNotSupported",
                                                    "PodOSSelectorNodeLabelDoesNotMatch",
                                                    "SysctlForbidden",
                                                    "TopologyAffinityError",
                                                    "UnexpectedAdmissionError",
                                                    "UnexpectedPredicateFailureType",
                                                    "UnknownReason"};

}  // namespace

Answer refuse(std::string reason, std::string message, policy::Reason why) {
  Answer answer;
  answer.refusal = Refusal{std::move(reason), std::move(message)};
  answer.reasons.push_back(std::move(why));
  return answer;
}

api::PodStatus refused_status(const api::Pod& pod, const Refusal& refusal) {
  api::PodStatus status;
  status.observed_generation = pod.metadata.generation;
  status.phase = "Failed";
  status.reason = refusal.reason;
  status.message = "Pod was rejected: " + refusal.message;
  status.qos_class = to_string(api::qos_of(pod));
  return status;
}

std::string_view rejection_label(std::string_view reason) {
  const auto known = std::ranges::find(kCounted, reason);
  if (known != kCounted.end()) return *known;
  return reason.starts_with("OutOf") ? "OutOfExtendedResources" : "Other";
}

Ending preempted() {
  return {"Failed", std::string(kPreempting), std::string(kPreemptedMessage), std::string(kPreemptedCondition)};
}

void mark_ended(api::PodStatus& status, const Ending& ending) {
  static constexpr std::string_view kDisruptionTarget = "DisruptionTarget";
  status.phase = ending.phase;
  status.reason = ending.reason;
  status.message = ending.message;
  if (!ending.disruption) return;
  std::erase_if(status.conditions, [](const api::PodCondition& each) { return each.type == kDisruptionTarget; });
  status.conditions.push_back({.type = std::string(kDisruptionTarget),
                               .status = "True",
                               .reason = "TerminationByKubelet",
                               .message = *ending.disruption,
                               .last_probe_time = {},
                               .last_transition_time = {}});
}

}  // namespace spillway::admission
