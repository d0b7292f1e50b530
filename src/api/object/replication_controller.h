// v1 ReplicationController as the controllers see it. Thread: any. Source: Kubernetes API reference,
// ReplicationController.
#pragma once

#include "api/object/workload.h"

namespace spillway::api {

/// The predecessor of ReplicaSets: the same, except that its selector is a set of labels that pods must have.
/// `selector` is equivalent to these labels; without labels it selects no pod.
struct ReplicationController : ReplicaSet {
  static constexpr std::string_view kKind = "ReplicationController";
  static constexpr std::string_view kApiVersion = "v1";
  StringMap selected_labels;
};

}  // namespace spillway::api
