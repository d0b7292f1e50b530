// The rolling update of a DaemonSet: which of its pods are of the present template, and which of the others go now.
// Thread: any (pure). Source: Kubernetes docs, "Perform a Rolling Update on a DaemonSet"; 1.32's order of candidates.
#pragma once

#include "api/json/json.h"
#include "api/object/workload.h"
#include "policy/workloads/pod_state.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

/// Counts the templates the set has had, written by the API server; and the label of a pod with the count of its
/// template.
inline constexpr std::string_view kTemplateGenerationAnnotation = "deprecated.daemonset.template.generation";
inline constexpr std::string_view kTemplateGenerationLabel = "pod-template-generation";

/// True if the pod has the present template, by its hash or by the template's generation. A pod without a generation
/// has the first one. `hash`: the present template's; empty: unknown.
bool is_updated(const api::DaemonSet& set, const api::Pod& pod, std::string_view hash = {});

/// The number of pods that a rolling update may add beside old ones, and the number that may be missing, at a time.
struct DaemonBounds {
  std::int64_t surge = 0;
  std::int64_t unavailable = 0;

  friend bool operator==(const DaemonBounds&, const DaemonBounds&) = default;
};

/// The bounds for `desired` pods. They are numbers, or shares that are rounded up; one that cannot be parsed counts as
/// absent. If both come to 0, one pod may be unavailable: the update could not proceed otherwise.
DaemonBounds daemon_bounds(const api::DaemonSet& set, std::int64_t desired);

/// A pod of one node, and whether it is available.
struct DaemonPod {
  PodPtr pod;  // null: there is no pod
  bool available = false;
};

/// The pods of a DaemonSet on one node that should have a pod, or has one.
struct DaemonPlace {
  std::string node;
  DaemonPod updated;     // has the present template
  DaemonPod outdated;    // has an earlier template
  bool crowded = false;  // several old or new pods: the surplus is removed first
  bool wanted = true;    // a pod is to run here
  bool held = false;     // no pod is created here yet, because the last one failed
};

/// The pods that one step of a rolling update creates and deletes.
struct DaemonStep {
  std::vector<PodPtr> remove;
  std::vector<std::string> create;  // a pod of the present template on these nodes, beside the old one
};

/// Without a surge: deletes outdated pods, all that are not available and, in the order given, as many of the others as
/// may be missing. With one: creates an updated pod beside an outdated one, wherever that is not available and, of the
/// others, as many as the surge allows; an outdated pod is deleted once the updated one beside it is available.
/// Outdated pods of nodes that should have none are deleted if they are not available, or while more than `desired`
/// are.
DaemonStep next_daemon_step(const std::vector<DaemonPlace>& places, const DaemonBounds& bounds, std::int64_t desired);

}  // namespace spillway::workloads
