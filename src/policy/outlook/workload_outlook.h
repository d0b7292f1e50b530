// The pods that a ReplicaSet, StatefulSet or DaemonSet wants and has, and the first thing in the way of the others.
// Thread: any (pure). Bounds: kRowsMax rows in a part. Source: Kubernetes docs, "ReplicaSet", "StatefulSets",
// "DaemonSet".
#pragma once

#include "api/object/meta.h"
#include "policy/outlook/claim_outlook.h"
#include "policy/outlook/job_outlook.h"
#include "policy/outlook/outlook.h"
#include "policy/workloads/pod_state.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::outlook {

using ClaimPtr = std::shared_ptr<const api::PersistentVolumeClaim>;

/// kOneByOne: a StatefulSet with podManagementPolicy OrderedReady.
enum class PodOrder { kAny, kOneByOne };

struct WorkloadScene {
  std::string_view kind;  // "ReplicaSet", "StatefulSet", "DaemonSet"
  const api::ObjectMeta& metadata;
  std::int64_t wanted;  // pods
  PodOrder order = PodOrder::kAny;
  std::optional<std::vector<workloads::PodPtr>> pods;  // pods that the workload owns, by name; nullopt: not read
  std::vector<ClaimPtr> claims;                        // all claims of the namespace, as far as they were read
  std::optional<std::vector<ClassPtr>> classes;        // nullopt: not read
  std::optional<RefusedPods> refused;
};

Outlook explain_workload(const WorkloadScene& scene, WallTime now);

/// The first claim that keeps the pod from a node: it is not bound, and does not wait for the pod itself
/// (WaitForFirstConsumer). nullptr: there is none among `claims`, or the pod has a node.
const api::PersistentVolumeClaim* unbound_claim_of(const api::Pod& pod, const std::vector<ClaimPtr>& claims,
                                                   const std::optional<std::vector<ClassPtr>>& classes);

/// The outlook of a pod that waits for a claim; nullopt: it does not.
std::optional<Outlook> explain_claim_of(const api::Pod& pod, const std::vector<ClaimPtr>& claims,
                                        const std::optional<std::vector<ClassPtr>>& classes, WallTime now);

}  // namespace spillway::outlook
