// The Endpoints object of a Service: the addresses of the pods behind it, grouped by their ports.
// Thread: any (pure).
// Bounds: a thousand addresses. Source: Kubernetes docs, "Service", Endpoints; Kubernetes 1.36; spec "Scheduler and
// workloads", 16; vectors workloads/repack_subsets.
#pragma once

#include "api/object/endpoints.h"
#include "api/object/service.h"
#include "policy/endpoints/service_pods.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::endpoints {

inline constexpr std::size_t kAddressesMax = 1000;  // as upstream; more are cut
inline constexpr std::string_view kOverCapacity = "endpoints.kubernetes.io/over-capacity";
inline constexpr std::string_view kTruncated = "truncated";
inline constexpr std::string_view kEndpointsManagedByLabel = "endpoints.kubernetes.io/managed-by";
inline constexpr std::string_view kEndpointController = "endpoint-controller";

/// The same addresses and ports with one subset for each set of ports, everything in upstream's order. An address that
/// is ready in one subset and not ready in another of the same port is not ready.
std::vector<api::EndpointSubset> repack(std::span<const api::EndpointSubset> subsets);

/// The subsets, one for each set of ports. `pods`: the pods that the Service selects.
std::vector<api::EndpointSubset> subsets_of(const api::Service& service, std::span<const PodPtr> pods);

/// The Endpoints to write; nullopt: `current` is up to date. `current` null: there is none yet.
std::optional<api::Endpoints> plan_endpoints(const api::Service& service, std::span<const PodPtr> pods,
                                             const api::Endpoints* current, std::optional<WallTime> trigger_time);

/// Keeps as many addresses as allowed, of each subset its share: ready ones first. False: there was room for all.
bool truncate(std::vector<api::EndpointSubset>& subsets);

}  // namespace spillway::endpoints
