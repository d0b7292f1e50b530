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

/// Counts the templates the set has had, written by the API server; and the label of a pod that says which it is of.
inline constexpr std::string_view kTemplateGenerationAnnotation = "deprecated.daemonset.template.generation";
inline constexpr std::string_view kTemplateGenerationLabel = "pod-template-generation";

/// Of the present template, by its hash or by the count of templates. Who says nothing of the count is of the first.
/// `hash`: of the present template; empty: not known.
bool is_updated(const api::DaemonSet& set, const api::Pod& pod, std::string_view hash = {});

/// How many of `desired` pods may be missing at a time: a number, or a share that is rounded up; at least one (a surge
/// in place of it is not done).
std::int64_t unavailable_max(const api::Json& max_unavailable, std::int64_t desired);

/// What stands on one of the nodes the set is meant for.
struct DaemonPlace {
  PodPtr pod;  // null: none, or more than one, or one on its way out
  bool updated = false;
  bool available = false;
};

/// The pods of earlier templates to delete now: all that are not available, and of the others, in the order given, as
/// many as `unavailable_max` leaves room for.
std::vector<PodPtr> pods_to_update(const std::vector<DaemonPlace>& places, std::int64_t unavailable_max);

}  // namespace spillway::workloads
