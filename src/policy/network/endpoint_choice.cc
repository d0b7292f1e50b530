#include "policy/network/endpoint_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace spillway::network {
namespace {

using Indices = std::vector<std::size_t>;

std::vector<std::string> zones_of(const api::Json& hints) {
  std::vector<std::string> zones;
  const api::Json* list = hints.find("forZones");
  if (list == nullptr || list->if_array() == nullptr) return zones;
  for (const api::Json& zone : *list->if_array()) zones.emplace_back(zone.string_at({"name"}));
  return zones;
}

template <typename Wanted>
Indices those(std::span<const Endpoint> endpoints, Wanted wanted) {
  Indices out;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    if (wanted(endpoints[i])) out.push_back(i);
  }
  return out;
}

bool serves_while_terminating(const Endpoint& endpoint) {
  return endpoint.serving && endpoint.terminating;
}

bool has_zone(const Endpoint& endpoint, std::string_view zone) {
  return std::ranges::find(endpoint.zones, zone) != endpoint.zones.end();
}

/// Every ready endpoint is meant for some zone, and one at least for this one.
bool uses_topology(std::span<const Endpoint> endpoints, std::string_view zone) {
  if (zone.empty()) return false;
  bool one_for_zone = false;
  for (const Endpoint& each : endpoints) {
    if (!each.ready) continue;
    if (each.zones.empty()) return false;
    one_for_zone = one_for_zone || has_zone(each, zone);
  }
  return one_for_zone;
}

Indices cluster_list(std::span<const Endpoint> endpoints, std::string_view zone) {
  const bool by_zone = uses_topology(endpoints, zone);
  Indices ready =
      those(endpoints, [&](const Endpoint& each) { return each.ready && (!by_zone || has_zone(each, zone)); });
  return ready.empty() ? those(endpoints, serves_while_terminating) : ready;
}

Indices local_list(std::span<const Endpoint> endpoints) {
  Indices ready = those(endpoints, [](const Endpoint& each) { return each.ready && each.local; });
  if (!ready.empty()) return ready;
  return those(endpoints, [](const Endpoint& each) { return each.local && serves_while_terminating(each); });
}

}  // namespace

std::string Endpoint::text() const {
  return ip.v4 ? fmt::format("{}:{}", text_of(ip), port) : fmt::format("[{}]:{}", text_of(ip), port);
}

std::optional<std::string> service_of(const api::EndpointSlice& slice) {
  if (slice.address_type == "FQDN") return std::nullopt;
  const auto label = slice.metadata.labels.find(kServiceNameLabel);
  if (label == slice.metadata.labels.end() || label->second.empty()) return std::nullopt;
  return label->second;
}

MergedEndpoints merge_endpoints(std::span<const SlicePtr> slices, Family family, std::string_view node_name) {
  std::vector<const api::EndpointSlice*> ordered;
  for (const SlicePtr& slice : slices) {
    if (slice->address_type == name_of(family)) ordered.push_back(slice.get());
  }
  std::ranges::sort(ordered, {},
                    [](const api::EndpointSlice* slice) -> const std::string& { return slice->metadata.name; });
  MergedEndpoints out;
  std::map<PortName, std::map<std::string, Endpoint>> by_text;
  for (const api::EndpointSlice* slice : ordered) {
    for (const api::SliceEndpoint& given : slice->endpoints) {
      if (given.addresses.empty()) continue;
      const auto ip = api::parse_ip(given.addresses.front());
      if (!ip || family_of(*ip) != family) {
        out.wrong_family.push_back(given.addresses.front());
        continue;
      }
      Endpoint endpoint{.ip = *ip,
                        .local = given.node_name.has_value() && *given.node_name == node_name,
                        .ready = given.ready.value_or(true),
                        .serving = given.serving.value_or(true),
                        .terminating = given.terminating.value_or(false),
                        .zones = zones_of(given.hints)};
      for (const api::SlicePort& port : slice->ports) {
        if (!port.name || !port.port || *port.port <= 0) continue;
        endpoint.port = *port.port;
        auto& list = by_text[{*port.name, port.protocol.value_or("TCP")}];
        const auto [slot, is_new] = list.try_emplace(endpoint.text(), endpoint);
        if (!is_new && endpoint.local) slot->second = endpoint;
      }
    }
  }
  for (auto& [name, list] : by_text) {
    std::vector<Endpoint>& endpoints = out.ports[name];
    for (auto& [text, endpoint] : list) endpoints.push_back(std::move(endpoint));
  }
  return out;
}

EndpointChoice choose_endpoints(const ServicePort& port, std::span<const Endpoint> endpoints, std::string_view zone) {
  EndpointChoice out;
  if (port.uses_cluster_endpoints()) {
    out.cluster = cluster_list(endpoints, zone);
    out.reachable = *out.cluster;
    out.any = !out.cluster->empty();
  }
  if (port.uses_local_endpoints()) {
    out.local = local_list(endpoints);
    Indices both;
    std::ranges::set_union(out.reachable, *out.local, std::back_inserter(both));
    out.reachable = std::move(both);
    out.any = out.any || std::ranges::any_of(endpoints, [](const Endpoint& each) {
                return each.ready || serves_while_terminating(each);
              });
  }
  return out;
}

std::size_t local_ready_addresses(const MergedEndpoints& endpoints) {
  std::set<api::IpAddress> addresses;
  for (const auto& [name, list] : endpoints.ports) {
    for (const Endpoint& each : list) {
      if (each.local && each.ready) addresses.insert(each.ip);
    }
  }
  return addresses.size();
}

}  // namespace spillway::network
