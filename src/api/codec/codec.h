// Converts between documents and values. A type is described once (json_codec.cc) and that description decodes, encodes
// and lists its fields. Unknown fields are ignored when decoding and survive encode_over. Thread: any. Errors:
// kInvalid, with the path of the field ("spec.containers[0].resources.requests[cpu]") in `at`.
#pragma once

#include "api/json/json.h"
#include "api/object/event.h"
#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"
#include "api/object/summary.h"
#include "api/object/workload.h"
#include "base/error.h"

namespace spillway::api {

/// Instantiated beside the description of each type.
template <typename T>
struct Codec {
  static Result<T> decode(const Json& document);
  static void encode_over(const T& value, Json& base);
};

/// T: Pod, PodSpec, PodStatus, Node, NodeStatus, Lease, Event, Namespace, Deployment, ReplicaSet, DaemonSet,
/// PriorityClass, ObjectMeta, Taint, Toleration, Summary.
template <typename T>
Result<T> decode(const Json& document) {
  return Codec<T>::decode(document);
}

/// Writes the fields of T over `base`; fields unknown to T are not changed. Fields that mean the same keep their
/// spelling, so encode_over(decode(x), x) at most adds fields that must be there (kind, status of a condition).
/// Elements of lists are matched by their merge key (name, type, uid), else by position. A base that is no object
/// becomes one.
template <typename T>
void encode_over(const T& value, Json& base) {
  Codec<T>::encode_over(value, base);
}

/// Encodes a value as a document, with apiVersion and kind where T is a kind. Zero values are left out, as Kubernetes
/// does.
template <typename T>
Json encode(const T& value) {
  Json document;
  Codec<T>::encode_over(value, document);
  return document;
}

}  // namespace spillway::api
