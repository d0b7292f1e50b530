// HorizontalPodAutoscalers of autoscaling/v1 and v2 are one object, stored as v2. Fields without a member in v1 are
// kept in annotations of the view: a client that writes back what it read loses nothing. Thread: any (pure). Source:
// Kubernetes docs, "Horizontal Pod Autoscaling", API object; API reference, HorizontalPodAutoscaler v1.
#pragma once

#include "api/json/json.h"

namespace spillway::apiserver {

/// Converts the stored object to autoscaling/v1.
api::Json autoscaler_to_view(const api::Json& stored);
/// Converts an object of autoscaling/v1 to its stored form. Annotations that cannot be parsed are ignored.
api::Json autoscaler_from_view(const api::Json& view);

}  // namespace spillway::apiserver
