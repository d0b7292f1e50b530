// v1 ReplicationController as the controllers see it. Thread: any. Source: Kubernetes API reference,
// ReplicationController.
#pragma once

#include "api/object/workload.h"

namespace spillway::api {

/// What ReplicaSets were before: the same, but for its selector, which is labels that pods have to have. `selector`
/// says the same as they do; without labels it selects nothing.
struct ReplicationController : ReplicaSet {
  static constexpr std::string_view kKind = "ReplicationController";
  static constexpr std::string_view kApiVersion = "v1";
  StringMap selected_labels;
};

}  // namespace spillway::api
