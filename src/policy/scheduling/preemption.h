// Preemption for a pod that fits nowhere: the pods of lower priority that would have to be evicted from each node, and
// the node where that costs least. Per node all of them are removed, then as many as possible reprieved, those first
// whose eviction would break a disruption budget, then the most important. Nodes are independent of each other: only
// pods of one node are evicted.
// Thread: any (pure). Bounds: as many candidates as Profile::preemption allows. Complexity: of a node, its pods of
// lower priority times what its filters cost.
// Source: Kubernetes docs, "Pod Priority and Preemption"; spec "Scheduler and workloads", 8; vectors
// scheduling/preemption.
#pragma once

#include "api/object/disruption_budget.h"
#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/filter.h"
#include "policy/scheduling/place.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

using PodPtr = std::shared_ptr<const api::Pod>;
/// The pods that count on a node; of pods that are equally important the first one is spared first.
using PodsOn = std::function<std::vector<PodPtr>(const std::string& node)>;
/// Disruption budgets by namespace.
using BudgetsByNamespace = std::map<std::string, std::vector<std::shared_ptr<const api::PodDisruptionBudget>>>;

/// The condition in a victim's status, and its reason.
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";
inline constexpr std::string_view kPreemptionByScheduler = "PreemptionByScheduler";

/// A node, with the pods that would be evicted from it.
struct PreemptionCandidate {
  std::string node;
  std::vector<PodPtr> victims;  // the most important first; at least one
  std::size_t budget_violations = 0;
};

/// The cost of preempting on a node: the node with the smallest is chosen.
struct PreemptionCost {
  std::size_t budget_violations = 0;
  std::int32_t highest_priority = 0;  // the victims' highest
  std::int64_t priorities = 0;        // sum of the victims' priorities, counted from the lowest possible one
  std::size_t victims = 0;
  std::int64_t oldest_start = 0;  // among victims of the highest priority; a later start costs less

  friend auto operator<=>(const PreemptionCost&, const PreemptionCost&) = default;
};

PreemptionCost cost_of(const PreemptionCandidate& candidate);

/// A write to a pod; the writes to one pod are in the order of their execution.
struct PreemptionWrite {
  enum class Kind { kClearNomination, kMarkDisrupted, kDelete };

  Kind kind{};
  PodPtr pod;
};

struct Preemption {
  std::vector<PreemptionCandidate> candidates;
  std::optional<std::size_t> chosen;  // index of the chosen candidate
  /// The pod waits for the victims of an earlier preemption, or must not preempt: nothing is to be changed.
  bool not_eligible = false;
  /// "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."; empty: one was chosen, or
  /// there are no nodes.
  std::string message;

  const PreemptionCandidate* choice() const { return chosen ? &candidates[*chosen] : nullptr; }
};

/// The inputs of preemption.
struct PreemptionView {
  const std::map<std::string, policy::NodeLoad>& nodes;
  const PodsOn& pods_on;
  const BudgetsByNamespace& budgets;
  const Surroundings& around;
  const VolumeFilter& volumes;
  const Profile& profile;
  std::size_t first_node = 0;     // the index at which the search begins, modulo the nodes in question
  bool respects_budgets = false;  // no pod is chosen that a disruption budget protects
};

/// `refused`: the result of place_pod() for the pod on these nodes.
Preemption decide_preemption(const api::Pod& pod, const Placement& refused, const PreemptionView& view);

/// The candidate with these victims, and the number of budgets that their eviction violates.
PreemptionCandidate candidate_of(std::string node, std::vector<PodPtr> victims, const BudgetsByNamespace& budgets);
/// True if the pod, by the present state, fits on the node once these victims have left.
bool frees_enough(const api::Pod& pod, const PreemptionCandidate& candidate, const PreemptionView& view);
/// Index of the candidate with the lowest cost; nullopt: there are none.
std::optional<std::size_t> cheapest_of(const std::vector<PreemptionCandidate>& candidates);

/// Everything that has to be written for a choice, except to the pod itself. `around`: the other pods that are
/// nominated to the node.
std::vector<PreemptionWrite> writes_for(const api::Pod& pod, const PreemptionCandidate& choice,
                                        const Surroundings& around);

/// The status patch of a write that is not a deletion; it applies to this very pod only. `scheduler`: the preemptor's.
api::Json status_patch(const PreemptionWrite& write, std::string_view scheduler, WallTime at);

/// "Preempted by pod 5f0c… on node n1": the text of a victim's event.
std::string preempted_text(const api::Pod& pod, std::string_view node);

/// One entry for each victim: its priority and that of the preempting pod.
std::vector<policy::Candidate> victims_of(const api::Pod& pod, const PreemptionCandidate& choice);

/// The most nodes that a decision keeps.
inline constexpr std::size_t kNodesKept = 50;
/// The refusals by node, sorted by name; a node with several reasons appears several times.
std::vector<policy::Candidate> candidates_of(const Placement& refused);

}  // namespace spillway::scheduling
