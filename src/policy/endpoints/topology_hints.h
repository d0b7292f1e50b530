// Computes topology hints, the zones that each endpoint of a Service serves: those of their own zone
// (trafficDistribution PreferSameZone, PreferClose, PreferSameNode), or shared out by the CPU of the nodes of each zone
// (topology-mode Auto), where no zone may get so few that its endpoints carry a fifth more than their share. Thread:
// any (pure). Bounds: those of the slices. Source: Kubernetes docs, "Topology Aware Routing", "Service", traffic
// distribution; KEP-2433, KEP-4444; Kubernetes 1.32.
#pragma once

#include "api/object/endpoints.h"
#include "api/object/node.h"
#include "api/object/service.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::endpoints {

enum class HintMode : std::uint8_t { kNone, kSameZone, kSameNode, kByCapacity };

/// The annotation `service.kubernetes.io/topology-mode` takes precedence over the field, and its older name over both.
HintMode hint_mode(const api::Service& service);

/// The share of each zone in the CPU of all nodes, by name; they add up to 1. Empty: not enough is known.
using ZoneShares = std::map<std::string, double>;

/// The CPU (allocatable) of nodes that are ready and no control plane. The shares are unknown if one of them names no
/// zone or no CPU, or if all are in one zone.
class ZoneCapacity {
 public:
  void add(const api::Node& node);
  ZoneShares shares() const;

 private:
  std::map<std::string, std::int64_t> milli_by_zone_;
  bool gaps_ = false;
};

/// True if a change of a node may change the shares of the zones.
bool changes_shares(const api::Node& before, const api::Node& after);

/// The number of endpoints for each zone.
using EndpointsByZone = std::map<std::string, std::int64_t>;

/// True if a zone has fewer endpoints than its share allows, or the shares are unknown now.
bool is_overloaded(const EndpointsByZone& given, const ZoneShares& shares);

/// The slices of one family after a sync. Unchanged ones that need other hints become updated ones.
struct HintedSlices {
  std::vector<api::EndpointSlice>& created;
  std::vector<api::EndpointSlice>& updated;
  std::vector<std::shared_ptr<const api::EndpointSlice>>& unchanged;
};

void remove_hints(HintedSlices slices);

/// Sets the hint of each ready endpoint to its own zone, if it has one.
void hint_at_own_zone(HintedSlices slices);

/// Hints each endpoint at its zone, and at its node, if it has one.
void hint_at_own_node(HintedSlices slices);

struct HintsGiven {
  EndpointsByZone by_zone;
  std::string refused;  // the reason why there are no hints, in upstream's words; empty: there are
};

/// Sets hints for all ready endpoints, or for none. A slice that need not change keeps its hints.
HintsGiven hint_by_capacity(HintedSlices slices, const ZoneShares& shares);

}  // namespace spillway::endpoints
