// The requests of a pod, in the several ways the parts of Kubernetes count them.
// Thread: any. Source: KEP-753 (sidecars), KEP-2837 (pod-level resources), KEP-1287 (in-place resize);
// spec "Pod admission", 10; vectors admission/pod_requests.
#pragma once

#include "api/object/pod.h"

#include <optional>
#include <string_view>

namespace spillway::api {

enum class Overhead { kCounted, kLeftOut };

struct RequestOptions {
  PodFeatures features;
  Overhead overhead = Overhead::kCounted;
  // Stand-ins for every container that requests no cpu or memory at all (scoring); in a pod with requests for the whole
  // pod only if no container has any. nullopt: no stand-in. Limits never have stand-ins.
  std::optional<Quantity> missing_cpu;
  std::optional<Quantity> missing_memory;
};

/// max(sum of containers + sidecars, init containers in order) + overhead, exact. With pod_level_resources a cpu or
/// memory entry of spec.resources replaces the result of that resource; with in_place_pod_vertical_scaling a container
/// counts max(spec, status), or its status alone while a resize is infeasible.
ResourceList effective_requests(const Pod& pod, const RequestOptions& options);
/// The same walk over limits; overhead is added only where the limit is not zero.
ResourceList effective_limits(const Pod& pod, const RequestOptions& options);

/// The agent's older sum of one resource, for preemption and eviction ranking: containers, or the largest init
/// container, plus overhead unless that is zero. Sidecars are ordinary init containers here; "pods" is 1.
Quantity agent_request(const PodSpec& spec, std::string_view resource);

}  // namespace spillway::api
