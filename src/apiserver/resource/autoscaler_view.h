// HorizontalPodAutoscalers of autoscaling/v1 and v2 are one object, stored as v2. What v1 has no members for stands in
// annotations of the view: a client that writes back what it read loses nothing. Thread: any (pure). Source: Kubernetes
// docs, "Horizontal Pod Autoscaling", API object; API reference, HorizontalPodAutoscaler v1.
#pragma once

#include "api/json/json.h"

namespace spillway::apiserver {

/// As autoscaling/v1 writes what is stored.
api::Json autoscaler_to_view(const api::Json& stored);
/// As it is stored what autoscaling/v1 writes. Annotations that cannot be read say nothing.
api::Json autoscaler_from_view(const api::Json& view);

}  // namespace spillway::apiserver
