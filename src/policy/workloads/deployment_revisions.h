// The ReplicaSets of a Deployment as its history: which one is of the present template, which revision each is, what is
// written on them, which of the old ones go. Thread: any (pure).
// Source: spec "Scheduler and workloads", 12; vectors workloads/revision.
#pragma once

#include "api/object/workload.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

using ReplicaSetPtr = std::shared_ptr<const api::ReplicaSet>;
using ReplicaSets = std::vector<ReplicaSetPtr>;

inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredReplicas = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxReplicas = "deployment.kubernetes.io/max-replicas";

inline constexpr std::size_t kRevisionHistoryChars = 2000;  // as upstream; the oldest revisions are dropped

/// kNo: the ReplicaSet is about to be created; kYes: the API server has it already.
enum class Written { kYes, kNo };

bool older(const api::ReplicaSet& a, const api::ReplicaSet& b);  // by creation, then by name

/// The oldest ReplicaSet with the present template; null: there is none.
ReplicaSetPtr find_new(const api::Deployment& deployment, ReplicaSets sets);

/// All ReplicaSets except `latest`, which may be null; oldest first.
ReplicaSets all_but(const ReplicaSetPtr& latest, ReplicaSets sets);

/// The ReplicaSets with a size above 0, in the order given; null ones are left out.
ReplicaSets active_of(const ReplicaSets& sets);

/// The revision number; nullopt: malformed; 0: there is none.
std::optional<std::int64_t> revision_of(const api::ObjectMeta& metadata);
std::int64_t max_revision(const ReplicaSets& sets);
/// The second highest.
std::int64_t last_revision(const ReplicaSets& sets);

/// The only ReplicaSet with a size above 0; if there is none the new one, else the newest; null: there are several.
ReplicaSetPtr active_or_latest(const ReplicaSetPtr& latest, ReplicaSets old);

/// A whole number in an annotation.
std::optional<std::int64_t> number_on(const api::ObjectMeta& metadata, std::string_view annotation);

/// Writes the annotations that a later change of scale is computed from; false: they were up to date.
bool record_scale(api::ReplicaSet& set, const api::Deployment& deployment);

/// Copies the Deployment's annotations and raises the revision; false: nothing changed, or the revision on it cannot be
/// read.
bool record_revision(api::ReplicaSet& set, const api::Deployment& deployment, std::int64_t revision, Written written,
                     std::size_t history_chars_max = kRevisionHistoryChars);

/// Old ReplicaSets without pods beyond the history limit, lowest revision first.
ReplicaSets beyond_history(const api::Deployment& deployment, const ReplicaSets& old);

}  // namespace spillway::workloads
