// The status of a pod as the agent reports it, and the patch that brings the API server's copy there.
// Thread: any (pure). Source: Kubernetes docs, "Pod Lifecycle"; spec "Node agent", 15.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/pod_state/pod_worker.h"
#include "api/json/json.h"
#include "api/object/pod.h"
#include "base/time.h"
#include "policy/containers/pod_resize.h"

#include <vector>

namespace spillway::agent {

/// The part of a status that is about resizes.
struct ResizeReport {
  std::vector<api::PodCondition> conditions;            // with their times
  const containers::PodResources* allocated = nullptr;  // null: no resources are reported
  const containers::PodResources* actuated = nullptr;   // in force
};

/// Conditions keep their transition time while their status is unchanged. A terminal phase is set only in kTerminated.
api::PodStatus compute_status(const PodWorker& worker, const PodAddresses& addresses, WallTime now,
                              const ResizeReport& resize = {});

/// Strategic merge patch from `reported` to `wanted`, with the uid as precondition; null if nothing differs. Conditions
/// of others are left alone.
api::Json status_patch(const std::string& uid, const api::PodStatus& reported, const api::PodStatus& wanted);

/// "process://<uid>/<container>/<attempt>".
std::string container_id(const std::string& uid, const std::string& container, std::int32_t attempt);

}  // namespace spillway::agent
