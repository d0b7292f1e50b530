// EndpointSlices that mirror Endpoints written by a user for a Service without a selector, for clients that read slices
// alone. Thread: any (pure). Bounds: kMirroredPerSubset addresses of a subset are mirrored.
// Source: Kubernetes docs, "EndpointSlices", EndpointSlice mirroring; spec "Scheduler and workloads", 16.
#pragma once

#include "policy/endpoints/slice_plan.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace spillway::endpoints {

inline constexpr std::string_view kMirroringController = "endpointslicemirroring-controller.k8s.io";
/// The most addresses of a subset that are mirrored, and the most endpoints of a slice.
inline constexpr std::size_t kMirroredPerSubset = 1000;

/// True if these Endpoints get mirrored slices. `service`: the Service of the same name, null if there is none. Not
/// mirrored: Endpoints that are a lock between processes, and those whose label
/// `endpointslice.kubernetes.io/skip-mirror` is true.
bool is_mirrored(const api::Endpoints& endpoints, const api::Service* service);

/// The changes that turn the present slices into those of the Endpoints: one for each address family and set of ports.
/// Present slices are overwritten in place.
SlicePlan plan_mirror(const api::Endpoints& endpoints, std::span<const SlicePtr> slices);

/// Number of addresses beyond kMirroredPerSubset, which are in no slice.
std::size_t unmirrored_addresses(const api::Endpoints& endpoints);

}  // namespace spillway::endpoints
