// Between documents and values. A type is described once (json_codec.cc) and that description decodes, encodes and
// lists the fields it knows. Unknown fields are ignored when decoding and survive encode_over. Thread: any. Errors:
// kInvalid, with the path of the field ("spec.containers[0].resources.requests[cpu]") in `at`.
#pragma once

#include "api/event.h"
#include "api/json.h"
#include "api/lease.h"
#include "api/node.h"
#include "api/pod.h"
#include "api/summary.h"
#include "api/workload.h"
#include "base/error.h"

namespace spillway::api {

/// T: Pod, PodSpec, PodStatus, Node, NodeStatus, Lease, Event, Namespace, ReplicaSet, DaemonSet, PriorityClass,
/// ObjectMeta, Taint, Toleration, Summary.
template <typename T>
Result<T> decode(const Json& document);

/// With apiVersion and kind where T is a kind. Zero values are left out, as Kubernetes does.
template <typename T>
Json encode(const T& value);

/// Writes the fields T knows over `base`, leaving every field T does not know as it was.
template <typename T>
void encode_over(const T& value, Json& base);

}  // namespace spillway::api
