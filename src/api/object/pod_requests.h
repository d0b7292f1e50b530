// The requests and limits of a pod. Every user of them computes them here. Thread: any.
// Source: KEP-753 (sidecars), KEP-2837 (pod-level resources), KEP-1287 (in-place resize); spec "Pod admission", 10;
// vectors admission/pod_requests, admission/pod_requests_136.
#pragma once

#include "api/object/pod.h"

#include <optional>
#include <string_view>

namespace spillway::api {

enum class Overhead { kCounted, kLeftOut };

struct RequestOptions {
  PodFeatures features;
  Overhead overhead = Overhead::kCounted;
  // Assumed requests of every container that requests no cpu or memory at all (scoring); in a pod with requests for the
  // whole pod only if no container has any. nullopt: no stand-in. Limits never have stand-ins.
  std::optional<Quantity> missing_cpu;
  std::optional<Quantity> missing_memory;
};

/// cpu, memory and huge pages: the resources that spec.resources may name.
bool is_pod_level_resource(std::string_view resource);
/// True if spec.resources has a request or limit of such a resource.
bool has_pod_level(const PodSpec& spec);
/// The pod level's amount of a resource it may name; nullptr: the containers' amounts count.
const Quantity* pod_level_request(const PodSpec& spec, std::string_view resource);
const Quantity* pod_level_limit(const PodSpec& spec, std::string_view resource);
/// The container's own limit if it states one above zero, else the pod level's; nullptr: none. cpu and memory.
const Quantity* limit_in_force(const PodSpec& spec, const Container& container, std::string_view resource);
/// The node has refused the last resize for good: a condition PodResizePending of reason Infeasible, or status.resize.
bool is_resize_infeasible(const PodStatus& status);

/// Defaults of a pod level that states something: limits of huge pages of which it states nothing are what the
/// containers have together. Where there are limits, a request it does not state is what the containers request
/// together, else its limit; requests of huge pages equal their limits.
/// Source: KEP-2837, vectors api/defaulting.
void default_pod_level(PodSpec& spec);

/// max(sum of containers + sidecars, init containers in order) + overhead, exact. With pod_level_resources each entry
/// of spec.resources.requests replaces the result of that resource. With in_place_pod_vertical_scaling a container
/// whose status has resources counts max(spec, allocated, in force), or without the spec while a resize is infeasible;
/// init containers only if they are sidecars; and the pod level likewise where the status of the pod has resources.
ResourceList effective_requests(const Pod& pod, const RequestOptions& options);
/// The same walk over limits, where nothing is allocated; overhead is added only where the limit is not zero.
ResourceList effective_limits(const Pod& pod, const RequestOptions& options);
/// Aggregates requests or limits of the containers of the spec alone: no pod level, no overhead.
ResourceList aggregate_requests(const PodSpec& spec);
ResourceList aggregate_limits(const PodSpec& spec);

/// The agent's older sum of one resource, for preemption and eviction ranking: the pod level's request, else containers
/// or the largest init container; plus overhead unless that is zero. Sidecars are ordinary init containers here; "pods"
/// is 1.
Quantity agent_request(const PodSpec& spec, std::string_view resource, const PodFeatures& features = {});

}  // namespace spillway::api
