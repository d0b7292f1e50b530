// The plug-in LimitRanger: the LimitRanges of a namespace against what is made in it. Several are applied in the order
// of their names; a request outside one of them is refused for that one. Documents in, rules of policy/limits.
// Source: spec "Scheduler and workloads", 19.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

namespace spillway::apiserver::kinds {

/// Gives the containers of a new pod the limits and requests that they do not state, and records it in an annotation;
/// the class of the pod follows.
void fill_in_limits(api::Json& pod, const AdmissionContext& context);
/// Refuses a new pod whose requests are below or above the limits of the namespace.
api::StatusResult<void> confirm_pod_limits(const api::Json& pod, const AdmissionContext& context);
/// Checks the limits for a PersistentVolumeClaim that is new or has grown.
api::StatusResult<void> confirm_claim_limits(const api::Json& claim, const AdmissionContext& context);

}  // namespace spillway::apiserver::kinds
