#include "policy/scheduling/preemption_outlook.h"

#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/relations.h"

#include <algorithm>
#include <utility>

namespace spillway::scheduling {

namespace {

constexpr std::string_view kPrefix = "preemption: ";
constexpr std::string_view kForbidden = "not eligible due to preemptionPolicy=Never.";
constexpr std::string_view kUseless = "Preemption is not helpful for scheduling";
constexpr std::string_view kNoVictims = "No preemption victims found for incoming pod";

/// What the node says without the pods that would go first.
std::optional<Refusal> refuse_without_lower(const PendingPod& pending, Relations relations, const Topology& nodes,
                                            std::size_t node, NodeConditions conditions, const PodsOn& pods_on) {
  policy::NodeLoad left(nodes.load(node).node);
  for (const api::Pod* other : pods_on(nodes.name(node))) {
    if (api::priority_of(*other) >= api::priority_of(*pending.pod)) {
      left.add_unscored(*other);
    } else {
      relations.remove(node, *other);
    }
  }
  if (auto no = refuse_pod(pending, left, conditions)) return no;
  return relations.refuse(node);
}

}  // namespace

PreemptionOutlook preemption_outlook(const api::Pod& pod, const Placement& refused,
                                     const std::map<std::string, policy::NodeLoad>& nodes, const PodsOn& pods_on,
                                     NodeConditions conditions, const Surroundings& around, const Profile& profile) {
  PreemptionOutlook outlook;
  if (nodes.empty()) return outlook;
  if (pod.spec.preemption_policy == "Never") {
    outlook.message = fmt::format("{}{}", kPrefix, kForbidden);
    return outlook;
  }
  const PendingPod pending = make_pending(pod);
  Topology topology(nodes, around);
  const Relations relations(pending, around, topology, profile);
  std::map<std::string, std::size_t> counts;
  if (refused.resolvable.size() < nodes.size())
    counts[std::string(kUseless)] = nodes.size() - refused.resolvable.size();
  for (const std::string& name : refused.resolvable) {
    const policy::NodeLoad& load = nodes.at(name);
    if (!load.lowest_priority || *load.lowest_priority >= api::priority_of(pod)) {
      ++counts[std::string(kNoVictims)];
      continue;
    }
    const std::optional<Refusal> no =
        refuse_without_lower(pending, relations, topology, *topology.number_of(name), conditions, pods_on);
    if (!no) {
      outlook.node = name;
      return outlook;
    }
    for (const Misfit& misfit : no->misfits) ++counts[misfit.text];
  }
  outlook.message = std::string(kPrefix) + unavailable_text(nodes.size(), counts);
  return outlook;
}

std::vector<policy::Candidate> candidates_of(const Placement& refused, const PreemptionOutlook& outlook) {
  std::vector<policy::Candidate> candidates;
  for (const policy::Reason& reason : refused.reasons) {
    const auto node = policy::text_fact(reason, "node");
    if (!node || candidates.size() == kNodesKept) continue;
    policy::Candidate candidate{.subject = {.kind = "Node", .ns = {}, .name = std::string(*node), .uid = {}},
                                .reason = reason,
                                .decided_by = {}};
    std::erase_if(candidate.reason.facts, [](const policy::Fact& fact) { return fact.name == "node"; });
    if (candidate.subject.name == outlook.node) {
      candidate.reason.facts.push_back({"without_lower_priorities", std::string("fits")});
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace spillway::scheduling
