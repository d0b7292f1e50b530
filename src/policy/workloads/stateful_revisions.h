// The templates that a StatefulSet has had: the revision its pods are updated to, the one they had before, and the old
// ones to delete. Thread: any (pure). Source: Kubernetes docs, "StatefulSet", "Rolling Updates"; spec "Scheduler and
// workloads", 13.
#pragma once

#include "api/object/controller_revision.h"
#include "api/object/workload.h"
#include "policy/workloads/pod_state.h"
#include "policy/workloads/revision_history.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::workloads {

struct StatefulRevisions {
  RevisionPtr update;                             // revision of the present template; null: must be created
  std::optional<api::ControllerRevision> create;  // revision to create, without owner
  std::optional<std::int64_t> renumber;           // new number of `update`, because it is the latest again
  RevisionPtr current;                            // null: the revision of the present template
};

/// `owned`: the revisions of the set. `collisions`: how many of its names were taken.
StatefulRevisions plan_stateful_revisions(const api::StatefulSet& set, std::vector<RevisionPtr> owned,
                                          std::int32_t collisions);

/// Revisions that are neither of these two nor of a pod, beyond the history's limit: oldest first.
std::vector<RevisionPtr> surplus_revisions(const api::StatefulSet& set, std::vector<RevisionPtr> owned,
                                           const api::ControllerRevision& current,
                                           const api::ControllerRevision& update, const std::vector<PodPtr>& pods);

/// The hash of a revision's data: "6d9d8768dd".
std::string revision_data_hash(const api::Json& data, std::optional<std::int32_t> collisions);

/// The template that a revision leads back to.
api::PodTemplate template_of(const api::ControllerRevision& revision);

}  // namespace spillway::workloads
