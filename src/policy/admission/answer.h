// A node's answer to a pod that wants to start: admitted, admitted once its victims have ended, or refused with
// upstream's words; and the reasons. Thread: any (plain values). Source: spec "Pod admission", 1, 2, 8.
#pragma once

#include "api/object/pod.h"
#include "policy/reason.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {

/// A refusal, in the words of events and status: {"OutOfcpu", "Node didn't have enough resource: cpu, requested: …"}.
struct Refusal {
  std::string reason;
  std::string message;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// A pod that is evicted so that the admitted one can start.
struct Victim {
  api::PodKey pod;
  std::string uid;
  policy::Reason reason;                      // the round of the choice
  std::vector<policy::Candidate> candidates;  // this pod first; only the nearest ones if there were many
  std::int64_t candidates_total = 0;

  friend bool operator==(const Victim&, const Victim&) = default;
};

struct Answer {
  std::optional<Refusal> refusal;  // nullopt: the pod may start, once the victims have ended
  /// Victims in the order of their kills. Also set with a refusal: a later handler can refuse a pod that preempts.
  std::vector<Victim> victims;
  /// The resource whose shortage began the preemption; empty without victims.
  std::string preemption_signal;
  std::vector<policy::Reason> reasons;

  friend bool operator==(const Answer&, const Answer&) = default;
};

Answer refuse(std::string reason, std::string message, policy::Reason why);

/// The status of a refused pod; nothing else of it survives. The message gets the prefix "Pod was rejected: ".
api::PodStatus refused_status(const api::Pod& pod, const Refusal& refusal);

/// The value of the label `reason` of kubelet_admission_rejections_total: reasons outside upstream's list become
/// "OutOfExtendedResources" or "Other", so that labels stay bounded.
std::string_view rejection_label(std::string_view reason);

inline constexpr std::string_view kPreempting = "Preempting";
inline constexpr std::string_view kPreemptedMessage = "Preempted in order to admit critical pod";
inline constexpr std::string_view kPreemptedCondition = "Pod was preempted by Kubelet to accommodate a critical pod.";

/// The status and event of a pod that is ended by its node.
struct Ending {
  std::string phase;   // "Failed"
  std::string reason;  // "Evicted"
  std::string message;
  std::optional<std::string> disruption;  // message of the condition DisruptionTarget; nullopt: none

  friend bool operator==(const Ending&, const Ending&) = default;
};

/// The ending of a pod that was preempted.
Ending preempted();

/// Sets phase, reason, message and the condition DisruptionTarget, without a time; other members are not changed.
void mark_ended(api::PodStatus& status, const Ending& ending);

}  // namespace spillway::admission
