// Decides if this pod may run on this node, by filters in upstream's order; the first one that refuses decides, with
// upstream's words. Filters that depend on other nodes are in relations.h. Thread: any (pure). Source: Kubernetes docs,
// "Scheduling Framework"; spec "Pod admission", 15; vectors admission/scheduler_filter.
#pragma once

#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/plugins.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

/// One thing that is in the way. `text` is upstream's: "Insufficient memory", "node(s) were unschedulable".
struct Misfit {
  policy::Reason reason;
  std::string text;

  friend bool operator==(const Misfit&, const Misfit&) = default;
};

/// A node's refusal: one misfit, or for kNodeResourcesFit every resource that is short.
struct Refusal {
  Filter filter{};
  std::vector<Misfit> misfits;
  bool hopeless = false;  // no removal of pods would help; by extenders and filters about other nodes

  /// Removing pods from the node could help.
  bool resolvable() const {
    const bool says_so =
        filter == Filter::kPodTopologySpread || filter == Filter::kInterPodAffinity || filter == Filter::kExtender;
    return filter == Filter::kNodePorts || filter == Filter::kNodeResourcesFit ||
           filter == Filter::kVolumeRestrictions || filter == Filter::kNodeVolumeLimits || (says_so && !hopeless);
  }

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// The refusal of a node because of the pod's volumes, by those filters that are not left out; nullopt: none refuses.
/// The pods on the node are those of the load.
using VolumeFilter = std::function<std::optional<Refusal>(const policy::NodeLoad& node, FilterSet left_out)>;

/// nullopt: the pod fits, by the filters of its profile. `volumes` may be empty. NodeConditions::kLiterally: the node's
/// condition is checked first (ready, network available), its pressures last; memory pressure keeps BestEffort pods
/// away, the others keep all.
std::optional<Refusal> refuse_pod(const PendingPod& pod, const policy::NodeLoad& node,
                                  const VolumeFilter& volumes = {});

/// Evaluates one filter, if it depends on nothing but the node and the pods on it; false for the others.
bool refuses_by(Filter filter, const PendingPod& pod, const policy::NodeLoad& node);

}  // namespace spillway::scheduling
