// Container by container: collects the hints of all providers, decides by the topology policy, and lets the providers
// allocate.
// Thread: any; what changes is what the providers change. Source: spec "Pod admission", 5; vectors
// admission/topology_hints.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"
#include "policy/admission/topology.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::admission {

/// A failed allocation. `type`: the reason of the pod's rejection, if the provider has one of its own
/// ("SMTAlignmentError").
struct AllocationFailure {
  std::optional<std::string> type;
  std::string message;
};

/// Port: allocates one sort of resource (devices, CPUs, memory).
class HintProvider {
 public:
  virtual ~HintProvider() = default;
  /// nullopt: no opinion.
  virtual std::optional<ResourceHints> container_hints(const api::Pod& pod, const api::Container& container) = 0;
  virtual std::optional<ResourceHints> pod_hints(const api::Pod& pod) = 0;
  /// Allocates for one container, by the merged `hint`. nullopt: done, or nothing to do.
  virtual std::optional<AllocationFailure> allocate(const api::Pod& pod, const api::Container& container,
                                                    const TopologyHint& hint) = 0;
};

inline constexpr std::size_t kHintsKept = 16;

struct TopologyAnswer {
  std::optional<Refusal> refusal;  // nullopt: everything is allocated
  policy::Reason why;              // the reason of the refusal
  /// The hints that were compared when none was acceptable: those of each provider, the first kHintsKept of a resource.
  std::vector<policy::Reason> considered;
  /// Hints by container; containers that were not reached are absent. Allocations of earlier containers stay when a
  /// later one is refused.
  std::map<std::string, TopologyHint, std::less<>> affinity;
};

/// "Allocate failed due to <why>, which is unexpected", unless the failure has a type of its own.
Refusal refusal_of(const AllocationFailure& failure);

/// Init containers first, then containers, in the order of the spec.
TopologyAnswer admit_topology(const TopologySetup& setup, const api::Pod& pod,
                              std::span<HintProvider* const> providers);

}  // namespace spillway::admission
