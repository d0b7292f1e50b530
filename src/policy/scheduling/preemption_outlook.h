// A pod that fits nowhere: would it fit if pods of lower priority left? Nobody is removed for it; upstream's words say
// where that cannot help. Thread: any (pure). Source: Kubernetes docs, "Pod Priority and Preemption"; the scheduler's
// event FailedScheduling.
#pragma once

#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/filter.h"
#include "policy/scheduling/place.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::scheduling {

/// The pods that count on a node.
using PodsOn = std::function<std::vector<const api::Pod*>(const std::string& node)>;

struct PreemptionOutlook {
  /// The first node by name that would take the pod without its pods of lower priority.
  std::optional<std::string> node;
  /// "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."; empty if there is such a
  /// node (upstream would act and say nothing), or no node at all.
  std::string message;
};

/// `refused`: what place_pod() said of the pod on these nodes. Complexity: nodes, and the pods on those nodes that
/// have some of lower priority.
PreemptionOutlook preemption_outlook(const api::Pod& pod, const Placement& refused,
                                     const std::map<std::string, policy::NodeLoad>& nodes, const PodsOn& pods_on,
                                     NodeConditions conditions = NodeConditions::kByTaints,
                                     const Surroundings& around = {}, const Profile& profile = {});

/// At most so many nodes are kept in a decision.
inline constexpr std::size_t kNodesKept = 50;
/// What each node had against the pod, by name; a node with several things in its way is there several times.
std::vector<policy::Candidate> candidates_of(const Placement& refused, const PreemptionOutlook& outlook);

}  // namespace spillway::scheduling
