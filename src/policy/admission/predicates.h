// The agent's predicates: the scheduler's filters, evaluated again on the pod's node, and for a critical pod the search
// for pods to preempt.
// Thread: any (pure). Source: spec "Pod admission", 6, 8; vectors admission/predicate_admit, admission/preemption.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"
#include "policy/fit.h"
#include "policy/node_load.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spillway::admission {

/// A failed predicate other than a lack of resources.
struct FailedPredicate {
  std::string name;  // "NodeAffinity", "NodeName", "NodePorts", "TaintToleration"
  std::string text;  // "node(s) didn't match Pod's node affinity/selector"
  policy::Reason reason;

  friend bool operator==(const FailedPredicate&, const FailedPredicate&) = default;
};

using Failure = std::variant<policy::Shortage, FailedPredicate>;

/// Gates that predicates read.
struct PredicateFeatures {
  api::PodFeatures pod;
  bool sidecar_containers = true;

  friend bool operator==(const PredicateFeatures&, const PredicateFeatures&) = default;
};

/// A node as its agent sees it while it admits one pod.
struct PredicateNode {
  const policy::NodeLoad& load;  // load of the other pods, without the new one
  std::string_view operating_system = "linux";
  /// Devices handed out on the whole node, if the newcomer itself holds some: allocatable is at least as much.
  std::map<std::string, std::int64_t, std::less<>> devices_in_use;
  PredicateFeatures features;
  bool preempts = true;  // a critical pod may end others to get their room
};

/// All causes that keep the pod from the node: shortages, then NodeAffinity, NodeName, NodePorts, TaintToleration
/// (NoExecute taints, static pods excepted). Requests for extended resources the node does not list are left out.
std::vector<Failure> find_failures(const api::Pod& pod, const PredicateNode& node);

/// The recovery of a critical pod: only shortages can be met by preemption. Any other failure remains.
struct Recovery {
  std::vector<Failure> remaining;
  std::vector<Victim> victims;
  std::string preemption_signal;  // resource of the first shortage
  std::string error;              // not empty: too few pods may be preempted
  std::vector<policy::Reason> reasons;
};

/// `active`: all active pods, which are the candidates, in namespace/name order.
Recovery recover(const api::Pod& pod, std::vector<Failure> failures, std::span<const api::Pod* const> active);

/// The whole handler: operating system, sidecars, failures, recovery; the first remaining failure is the answer.
Answer admit_by_predicates(const api::Pod& pod, const PredicateNode& node, std::span<const api::Pod* const> active);

}  // namespace spillway::admission
