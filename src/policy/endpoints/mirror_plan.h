// The EndpointSlices of Endpoints that somebody writes by himself, for a Service without a selector: readers of slices
// alone know of them by these. Thread: any (pure). Bounds: kMirroredPerSubset addresses of a subset are mirrored.
// Source: Kubernetes docs, "EndpointSlices", EndpointSlice mirroring; spec "Scheduler and workloads", 16.
#pragma once

#include "policy/endpoints/slice_plan.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace spillway::endpoints {

inline constexpr std::string_view kMirroringController = "endpointslicemirroring-controller.k8s.io";
/// So many addresses of a subset, and so many endpoints of a slice.
inline constexpr std::size_t kMirroredPerSubset = 1000;

/// Whether these Endpoints have slices of their own. `service`: the one of their name, null if there is none. Endpoints
/// that are a lock between processes have none, nor those whose label `endpointslice.kubernetes.io/skip-mirror` is
/// true.
bool is_mirrored(const api::Endpoints& endpoints, const api::Service* service);

/// How the slices that are there become those of the Endpoints: one for each address family and set of ports. They are
/// written over where they stand.
SlicePlan plan_mirror(const api::Endpoints& endpoints, std::span<const SlicePtr> slices);

/// Addresses of these Endpoints beyond kMirroredPerSubset, which no slice has.
std::size_t unmirrored_addresses(const api::Endpoints& endpoints);

}  // namespace spillway::endpoints
