#include "policy/endpoints/topology_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace spillway::endpoints {
namespace {

using Slices = std::vector<api::EndpointSlice>;
using SlicePtr = std::shared_ptr<const api::EndpointSlice>;

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr double kOverload = 0.2;  // upstream: the share by which a zone may be overloaded

const std::string* label_of(const api::Node& node, std::string_view key) {
  const auto found = node.metadata.labels.find(std::string(key));
  return found == node.metadata.labels.end() ? nullptr : &found->second;
}

bool node_is_ready(const api::Node& node) {
  const auto ready = std::ranges::find(node.status.conditions, "Ready", &api::NodeCondition::type);
  return ready != node.status.conditions.end() && ready->status == "True";
}

bool is_ready(const api::SliceEndpoint& endpoint) {
  return endpoint.ready.value_or(false);
}

bool has_zone(const api::SliceEndpoint& endpoint) {
  return endpoint.zone && !endpoint.zone->empty();
}

api::Json hints_for(const std::string& zone) {
  return api::Json::object({{"forZones", api::Json::array({api::Json::object({{"name", zone}})})}});
}

std::vector<std::string> zones_in(const api::Json& hints) {
  std::vector<std::string> zones;
  const api::Json* listed = hints.find("forZones");
  const auto* each_zone = listed == nullptr ? nullptr : listed->if_array();
  if (each_zone == nullptr) return zones;
  for (const api::Json& zone : *each_zone) zones.emplace_back(zone.string_at({"name"}));
  return zones;
}

/// Unchanged slices that are not as they should be become updated ones.
template <typename IsRight>
void move_wrong(HintedSlices& slices, const IsRight& is_right) {
  std::erase_if(slices.unchanged, [&](const SlicePtr& slice) {
    if (is_right(*slice)) return false;
    slices.updated.push_back(*slice);
    return true;
  });
}

template <typename Visit>
void each_written(HintedSlices& slices, const Visit& visit) {
  for (Slices* written : {&slices.created, &slices.updated}) {
    for (api::EndpointSlice& slice : *written) {
      for (api::SliceEndpoint& endpoint : slice.endpoints) visit(endpoint);
    }
  }
}

struct Allocation {
  std::int64_t least = 0;
  std::int64_t most = 0;
  double desired = 0;
};

using Allocations = std::map<std::string, Allocation>;

std::int64_t least_for(double share, std::int64_t endpoints) {
  return static_cast<std::int64_t>(std::ceil(share * static_cast<double>(endpoints) * (1 / (1 + kOverload))));
}

/// The allocation per zone; empty: more endpoints are needed than exist.
Allocations allocations_of(std::int64_t endpoints, const ZoneShares& shares) {
  Allocations allocations;
  std::int64_t least_sum = 0;
  for (const auto& [zone, share] : shares) {
    const std::int64_t least = least_for(share, endpoints);
    const double desired = share * static_cast<double>(endpoints);
    allocations[zone] = {.least = least, .desired = std::max(desired, static_cast<double>(least))};
    least_sum += least;
  }
  if (least_sum > endpoints) return {};
  for (auto& [zone, allocation] : allocations) allocation.most = allocation.least + endpoints - least_sum;
  return allocations;
}

/// The present hints of a slice, if they may be kept: every ready endpoint has one, for a zone that needs endpoints,
/// and no zone has more than its maximum.
std::optional<EndpointsByZone> kept_hints(const api::EndpointSlice& slice, const EndpointsByZone& before,
                                          const Allocations& allocations) {
  EndpointsByZone kept;
  for (const api::SliceEndpoint& endpoint : slice.endpoints) {
    if (!is_ready(endpoint)) continue;
    const std::vector<std::string> zones = zones_in(endpoint.hints);
    if (zones.empty()) return std::nullopt;
    for (const std::string& zone : zones) {
      if (!allocations.contains(zone)) return std::nullopt;
      ++kept[zone];
    }
  }
  for (const auto& [zone, count] : kept) {
    const auto already = before.find(zone);
    const std::int64_t all = count + (already == before.end() ? 0 : already->second);
    if (all > allocations.at(zone).most) return std::nullopt;
  }
  return kept;
}

using Amounts = std::map<std::string, double>;

/// The entry with the largest amount, the first by name among equal ones; end(): all amounts are zero.
Amounts::iterator largest(Amounts& amounts) {
  auto best = amounts.end();
  for (auto each = amounts.begin(); each != amounts.end(); ++each) {
    if (each->second > 0 && (best == amounts.end() || each->second > best->second)) best = each;
  }
  return best;
}

/// The numbers of endpoints that each zone gives to others, and receives.
struct Moves {
  EndpointsByZone giving;
  EndpointsByZone receiving;
};

Moves moves_between(const Allocations& allocations, const EndpointsByZone& given) {
  Amounts too_many;
  Amounts too_few;
  for (const auto& [zone, allocation] : allocations) {
    const auto found = given.find(zone);
    const double surplus = static_cast<double>(found == given.end() ? 0 : found->second) - allocation.desired;
    if (surplus > 0) too_many[zone] = surplus;
    if (surplus < 0) too_few[zone] = -surplus;
  }
  Moves moves;
  for (;;) {
    const auto from = largest(too_many);
    const auto to = largest(too_few);
    if (from == too_many.end() || to == too_few.end()) return moves;
    if (std::max(from->second, to->second) < 1.0 || std::min(from->second, to->second) < 0.5) return moves;
    ++moves.giving[from->first];
    --from->second;
    ++moves.receiving[to->first];
    --to->second;
  }
}

/// Takes an endpoint of the first zone that has any left.
std::optional<std::string> take_one(EndpointsByZone& zones) {
  if (zones.empty()) return std::nullopt;
  const auto first = zones.begin();
  std::string zone = first->first;
  if (--first->second == 0) zones.erase(first);
  return zone;
}

void carry_out(Moves moves, HintedSlices& slices, EndpointsByZone& given) {
  each_written(slices, [&](api::SliceEndpoint& endpoint) {
    if (!is_ready(endpoint) || !endpoint.zone) return;
    const auto from = moves.giving.find(*endpoint.zone);
    if (from == moves.giving.end()) return;
    const std::optional<std::string> to = take_one(moves.receiving);
    if (!to) return;
    endpoint.hints = hints_for(*to);
    ++given[*to];
    --given[from->first];
    if (--from->second == 0) moves.giving.erase(from);
  });
}

/// Moves slices whose hints are the same as before from updated to unchanged.
void take_back_equal(HintedSlices& slices, const std::vector<SlicePtr>& before) {
  for (const SlicePtr& slice : before) {
    if (std::erase(slices.updated, *slice) > 0) slices.unchanged.push_back(slice);
  }
}

/// Hints of ready endpoints by `hints_of`; the others have none.
template <typename HintsOf>
void hint_each(HintedSlices& slices, const HintsOf& hints_of) {
  const auto wanted = [&](const api::SliceEndpoint& endpoint) {
    return is_ready(endpoint) ? hints_of(endpoint) : api::Json();
  };
  move_wrong(slices, [&](const api::EndpointSlice& slice) {
    return std::ranges::all_of(slice.endpoints, [&](const api::SliceEndpoint& endpoint) {
      return !is_ready(endpoint) || endpoint.hints == wanted(endpoint);
    });
  });
  each_written(slices, [&](api::SliceEndpoint& endpoint) { endpoint.hints = wanted(endpoint); });
}

struct Ready {
  std::int64_t count = 0;
  bool zones_known = true;
};

void count_ready(const api::EndpointSlice& slice, Ready& ready) {
  for (const api::SliceEndpoint& endpoint : slice.endpoints) {
    if (!is_ready(endpoint)) continue;
    ++ready.count;
    ready.zones_known = ready.zones_known && has_zone(endpoint);
  }
}

HintsGiven refuse(HintedSlices& slices, std::string why) {
  remove_hints(slices);
  return {.by_zone = {}, .refused = std::move(why)};
}

}  // namespace

HintMode hint_mode(const api::Service& service) {
  constexpr std::array kAnnotations{"service.kubernetes.io/topology-aware-hints",
                                    "service.kubernetes.io/topology-mode"};
  for (const char* const key : kAnnotations) {
    const auto mode = service.metadata.annotations.find(key);
    if (mode == service.metadata.annotations.end()) continue;
    if (mode->second == "Auto" || mode->second == "auto") return HintMode::kByCapacity;
    break;
  }
  if (service.traffic_distribution == "PreferSameNode") return HintMode::kSameNode;
  const bool same_zone =
      service.traffic_distribution == "PreferClose" || service.traffic_distribution == "PreferSameZone";
  return same_zone ? HintMode::kSameZone : HintMode::kNone;
}

void ZoneCapacity::add(const api::Node& node) {
  for (const char* const role : {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}) {
    if (label_of(node, role) != nullptr) return;
  }
  if (!node_is_ready(node)) return;
  const std::string* zone = label_of(node, kZoneLabel);
  const auto cpu = node.status.allocatable.find("cpu");
  const std::int64_t milli = cpu == node.status.allocatable.end() ? 0 : cpu->second.milli_value();
  if (zone == nullptr || zone->empty() || milli <= 0) {
    gaps_ = true;
  } else {
    milli_by_zone_[*zone] += milli;
  }
}

ZoneShares ZoneCapacity::shares() const {
  ZoneShares shares;
  if (gaps_ || milli_by_zone_.size() < 2) return shares;
  double all = 0;
  for (const auto& [zone, milli] : milli_by_zone_) all += static_cast<double>(milli);
  for (const auto& [zone, milli] : milli_by_zone_) shares[zone] = static_cast<double>(milli) / all;
  return shares;
}

bool changes_shares(const api::Node& before, const api::Node& after) {
  return node_is_ready(before) != node_is_ready(after) || before.metadata.labels != after.metadata.labels ||
         before.status.allocatable != after.status.allocatable;
}

bool is_overloaded(const EndpointsByZone& given, const ZoneShares& shares) {
  if (given.empty()) return false;
  if (shares.empty()) return true;
  std::int64_t all = 0;
  for (const auto& [zone, count] : given) all += count;
  return std::ranges::any_of(shares, [&](const auto& share) {
    const auto found = given.find(share.first);
    return found == given.end() || found->second < least_for(share.second, all);
  });
}

void remove_hints(HintedSlices slices) {
  move_wrong(slices, [](const api::EndpointSlice& slice) {
    return std::ranges::all_of(slice.endpoints, [](const auto& endpoint) { return endpoint.hints.is_null(); });
  });
  each_written(slices, [](api::SliceEndpoint& endpoint) { endpoint.hints = {}; });
}

void hint_at_own_zone(HintedSlices slices) {
  hint_each(slices, [](const api::SliceEndpoint& endpoint) {
    return has_zone(endpoint) ? hints_for(*endpoint.zone) : api::Json();
  });
}

void hint_at_own_node(HintedSlices slices) {
  hint_each(slices, [](const api::SliceEndpoint& endpoint) {
    api::Json hints = has_zone(endpoint) ? hints_for(*endpoint.zone) : api::Json();
    if (endpoint.node_name && !endpoint.node_name->empty()) {
      hints["forNodes"] = api::Json::array({api::Json::object({{"name", *endpoint.node_name}})});
    }
    return hints;
  });
}

HintsGiven hint_by_capacity(HintedSlices slices, const ZoneShares& shares) {
  if (shares.empty()) {
    return refuse(slices, "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes");
  }
  Ready ready;
  for (const Slices* written : {&slices.created, &slices.updated}) {
    for (const api::EndpointSlice& slice : *written) count_ready(slice, ready);
  }
  for (const SlicePtr& slice : slices.unchanged) count_ready(*slice, ready);
  const std::string counts = fmt::format(" ({} endpoints, {} zones)", ready.count, shares.size());
  if (ready.count < static_cast<std::int64_t>(shares.size())) {
    return refuse(slices, "Insufficient number of endpoints" + counts);
  }
  const Allocations allocations = allocations_of(ready.count, shares);
  if (allocations.empty()) {
    return refuse(
        slices,
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold" + counts);
  }
  if (!ready.zones_known) return refuse(slices, "One or more endpoints do not have a zone specified");

  EndpointsByZone given;
  const std::vector<SlicePtr> before = slices.unchanged;
  move_wrong(slices, [&](const api::EndpointSlice& slice) {
    const std::optional<EndpointsByZone> kept = kept_hints(slice, given, allocations);
    if (!kept) return false;
    for (const auto& [zone, count] : *kept) given[zone] += count;
    return true;
  });
  each_written(slices, [&](api::SliceEndpoint& endpoint) {
    endpoint.hints = {};
    if (!is_ready(endpoint)) return;
    ++given[*endpoint.zone];
    endpoint.hints = hints_for(*endpoint.zone);
  });
  carry_out(moves_between(allocations, given), slices, given);
  take_back_equal(slices, before);
  return {.by_zone = std::move(given), .refused = {}};
}

}  // namespace spillway::endpoints
