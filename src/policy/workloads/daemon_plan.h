// One sync of a DaemonSet: the pods to create and delete, the time of the next sync, and the status.
// Thread: any (pure but for the back-off it is given). Bounds: kBurstMax acts per sync; the rest follows in the next
// one. Source: Kubernetes docs, "DaemonSet"; API reference DaemonSetStatus; kube-controller-manager 1.32,
// syncDaemonSet.
#pragma once

#include "api/object/workload.h"
#include "policy/workloads/daemon_fit.h"
#include "policy/workloads/eviction_backoff.h"
#include "policy/workloads/failure_backoff.h"
#include "policy/workloads/pod_state.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::workloads {

struct DaemonView {
  const api::DaemonSet& set;
  std::map<std::string, DaemonFit> fits;               // all nodes
  std::map<std::string, std::vector<PodPtr>> by_node;  // the set's pods, by the node they are for
  std::string hash = {};                               // the hash of the present template; empty: unknown
  const EvictionBackoff* evictions = nullptr;          // nullptr: no replacement waits after evictions
};

/// kAwaited: only the status is computed, as the cache may not show the last sync's acts yet.
enum class DaemonActs { kAllowed, kAwaited };

struct DaemonPlan {
  std::vector<std::string> create;  // names of nodes that get a pod
  std::vector<PodPtr> remove;
  std::optional<Instant> requeue_at;  // a node waits for a back-off, or a ready pod for minReadySeconds
  api::DaemonSetStatus status;
};

inline constexpr std::size_t kDaemonBurstMax = 250;  // as upstream: creations in one sync

DaemonPlan plan_daemons(const DaemonView& view, DaemonActs acts, FailureBackoff& backoff, Now now);

}  // namespace spillway::workloads
