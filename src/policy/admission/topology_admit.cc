#include "policy/admission/topology_admit.h"

#include <fmt/format.h>

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
    answer.why = {policy::ReasonCode::kNotAligned, {{"scope", scope_name(container)}}};
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
