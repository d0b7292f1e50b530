// Computes the EndpointSlices of a Service, with few changes to the present ones: endpoints stay in their slice; new
// ones are added to slices that are written anyway, then to the fullest slice that has room for all others, then to new
// slices. No endpoint is moved between slices. Thread: any (pure). Bounds: `per_slice` endpoints in a slice. Source:
// Kubernetes docs, "EndpointSlices"; Kubernetes 1.32; spec "Scheduler and workloads", 16.
#pragma once

#include "api/object/endpoints.h"
#include "api/object/node.h"
#include "api/object/service.h"
#include "policy/endpoints/service_pods.h"
#include "policy/endpoints/topology_hints.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::endpoints {

using SlicePtr = std::shared_ptr<const api::EndpointSlice>;

inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr std::string_view kManagedByLabel = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";
inline constexpr std::size_t kEndpointsPerSlice = 100;  // upstream's default for --max-endpoints-per-slice

struct SliceView {
  const api::Service& service;
  /// The pods that the Service selects, in the order of their keys.
  std::span<const PodPtr> pods;
  /// the node of that name; nullptr: it does not exist
  std::function<const api::Node*(const std::string&)> node;
  /// The slices of the Service that are not being deleted, in the order of their keys.
  std::span<const SlicePtr> slices;
  std::size_t per_slice = kEndpointsPerSlice;
  /// The time of the pod's or Service's change that caused this sync.
  std::optional<WallTime> trigger_time = std::nullopt;
  /// The shares of all zones; needed if the Service requests hints by capacity.
  ZoneShares zones = {};
};

/// The changes, in the order in which they must be written.
struct SlicePlan {
  std::vector<api::EndpointSlice> created;  // with generateName
  std::vector<api::EndpointSlice> updated;
  std::vector<SlicePtr> deleted;
  /// Names of unknown nodes, whose pods were left out.
  std::vector<std::string> missing_nodes;
  /// Hints by family, if the Service requests hints by capacity.
  std::map<Family, HintsGiven> hints;

  /// True if there is nothing to write.
  bool empty() const { return created.empty() && updated.empty() && deleted.empty(); }
};

/// The families that a Service has slices of.
std::vector<Family> families_of(const api::Service& service);
/// The labels of a Service's slices.
api::StringMap slice_labels(const api::Service& service);

SlicePlan plan_slices(const SliceView& view);

}  // namespace spillway::endpoints
