#include "policy/admission/topology_admit.h"

#include <fmt/format.h>

#include <ranges>
#include <utility>
#include <vector>

namespace spillway::admission {
namespace {

Refusal no_locality() {
  return {"TopologyAffinityError", "Resources cannot be allocated with Topology locality"};
}

std::string scope_name(const api::Container* container) {
  return container == nullptr ? "pod" : "container " + container->name;
}

std::vector<const api::Container*> containers_of(const api::Pod& pod) {
  std::vector<const api::Container*> all;
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const api::Container& container : *list) all.push_back(&container);
  }
  return all;
}

void add_hints(const ResourceHints& hints, std::vector<policy::Reason>& reasons) {
  const auto add = [&](const std::string& resource, std::string nodes, std::string preferred) {
    reasons.push_back(
        {policy::ReasonCode::kHintConsidered,
         {{"resource", resource}, {"numa_nodes", std::move(nodes)}, {"preferred", std::move(preferred)}}});
  };
  for (const auto& [resource, list] : hints) {
    if (!list) {
      add(resource, "any", "yes");
    } else if (list->empty()) {
      add(resource, "none", "no");
    } else {
      for (const TopologyHint& hint : *list | std::views::take(kHintsKept)) {
        add(resource, text_of(hint), hint.preferred ? "yes" : "no");
      }
    }
  }
}

}  // namespace

Refusal refusal_of(const AllocationFailure& failure) {
  if (failure.type) return {*failure.type, failure.message};
  return {"UnexpectedAdmissionError", fmt::format("Allocate failed due to {}, which is unexpected", failure.message)};
}

TopologyAnswer admit_topology(const TopologySetup& setup, const api::Pod& pod,
                              std::span<HintProvider* const> providers) {
  TopologyAnswer answer;
  const bool aligned = setup.policy != TopologyPolicy::kNone;
  TopologyHint hint;
  const auto decide = [&](const api::Container* container) {
    std::vector<std::optional<ResourceHints>> hints;
    for (HintProvider* provider : providers) {
      hints.push_back(container == nullptr ? provider->pod_hints(pod) : provider->container_hints(pod, *container));
    }
    hint = merge_hints(setup, hints);
    if (accepts(setup.policy, hint)) return true;
    answer.refusal = no_locality();
    answer.why = {policy::ReasonCode::kNotAligned,
                  {{"scope", scope_name(container)},
                   {"policy", std::string(to_string(setup.policy))},
                   {"numa_nodes", text_of(hint)},
                   {"preferred", hint.preferred ? "yes" : "no"}}};
    for (const auto& each : hints) {
      if (each) add_hints(*each, answer.considered);
    }
    return false;
  };
  if (aligned && setup.scope == TopologyScope::kPod && !decide(nullptr)) return answer;
  for (const api::Container* container : containers_of(pod)) {
    if (aligned && setup.scope == TopologyScope::kContainer && !decide(container)) return answer;
    if (aligned) answer.affinity.insert_or_assign(container->name, hint);
    for (HintProvider* provider : providers) {
      if (const auto failure = provider->allocate(pod, *container, hint)) {
        answer.refusal = refusal_of(*failure);
        answer.why = {policy::ReasonCode::kNotAllocated, {{"container", container->name}, {"error", failure->message}}};
        return answer;
      }
    }
  }
  return answer;
}

}  // namespace spillway::admission
