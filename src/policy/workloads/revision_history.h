// The states that a DaemonSet has had, as ControllerRevisions: which one is the present, what it is numbered, which of
// the old ones go. Thread: any (pure). Source: Kubernetes docs, "Perform a Rollback on a DaemonSet"; 1.32's order.
#pragma once

#include "api/object/controller_revision.h"
#include "api/object/workload.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

using RevisionPtr = std::shared_ptr<const api::ControllerRevision>;

/// The label of a revision and of its pods.
inline constexpr std::string_view kRevisionHash = "controller-revision-hash";

/// {spec: {template: …, $patch: replace}}: the patch that leads back to this template.
api::Json template_data(const api::PodTemplate& pod_template);

/// True if `revision` holds `data`, made by template_data(). Revisions that a server before 1.34 stored have a null
/// creationTimestamp in the template, which is no difference: no pod is replaced because of it.
bool holds_data(const api::ControllerRevision& revision, const api::Json& data);

/// Empty: the object has none.
std::string revision_hash(const api::ObjectMeta& metadata);

struct RevisionPlan {
  RevisionPtr current;                            // null: must be created
  std::optional<api::ControllerRevision> create;  // revision to create, without owner
  std::optional<std::int64_t> renumber;           // new number of `current`, because it is the latest again
  std::vector<RevisionPtr> remove;                // beyond the history's limit, oldest first
};

/// `owned`: the revisions of the set. `used`: hashes of its pods; their revisions are kept.
RevisionPlan plan_revisions(const api::DaemonSet& set, const std::vector<RevisionPtr>& owned,
                            const std::set<std::string>& used);

}  // namespace spillway::workloads
