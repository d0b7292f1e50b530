// Chooses the endpoints of a Service that serve traffic on this node: slices are merged by port, then endpoints chosen
// by readiness, zone and policy. Thread: any (values). Order: endpoints are sorted by their text "IP:port". Equal
// slices give equal lists, in whatever order they arrived. Source: Kubernetes docs, "EndpointSlices", "Topology Aware
// Routing", "Service Internal Traffic Policy"; KEP-1669 (terminating endpoints).
#pragma once

#include "api/object/endpoints.h"
#include "policy/network/service_ports.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::network {

using SlicePtr = std::shared_ptr<const api::EndpointSlice>;

/// The label of a slice that names its Service.
inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

struct Endpoint {
  api::IpAddress ip;
  std::int32_t port = 0;
  bool local = false;
  bool ready = false;
  bool serving = false;
  bool terminating = false;
  std::vector<std::string> zones;  // hints; empty: none

  /// "10.0.0.1:80", "[fd00::1]:80".
  std::string text() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Name of the port, protocol.
using PortName = std::pair<std::string, std::string>;

struct MergedEndpoints {
  std::map<PortName, std::vector<Endpoint>> ports;
  std::vector<std::string> wrong_family;  // addresses of another family than their slice
};

/// The Service that a slice belongs to; nullopt: none, or its addresses are names.
std::optional<std::string> service_of(const api::EndpointSlice& slice);

/// `slices`: of one Service, in any order and of any family; those of another family are ignored.
MergedEndpoints merge_endpoints(std::span<const SlicePtr> slices, Family family, std::string_view node_name);

/// Lists of indices of the merged endpoints of a port, in their order. nullopt: the port does not use the list.
struct EndpointChoice {
  std::optional<std::vector<std::size_t>> cluster;
  std::optional<std::vector<std::size_t>> local;
  std::vector<std::size_t> reachable;  // in one of both lists
  bool any = false;                    // some endpoint of the cluster serves, though perhaps not here

  friend bool operator==(const EndpointChoice&, const EndpointChoice&) = default;
};

/// `zone`: of the node; empty: the node has no zone.
EndpointChoice choose_endpoints(const ServicePort& port, std::span<const Endpoint> endpoints, std::string_view zone);

/// Distinct addresses of ready endpoints on this node: the weight in the health check of a load balancer.
std::size_t local_ready_addresses(const MergedEndpoints& endpoints);

}  // namespace spillway::network
