#include "policy/network/stale_flows.h"

#include <algorithm>

namespace spillway::network {

void FlowCheck::add(const ServicePort& port, std::span<const Endpoint> endpoints) {
  if (port.key.protocol != "UDP") return;
  Servers servers;
  for (const Endpoint& each : endpoints) {
    if (each.serving) servers.insert(each.ip);
  }
  if (servers.empty()) return;
  const std::size_t index = servers_.size();
  servers_.push_back(std::move(servers));
  by_address_.try_emplace({port.cluster_ip, port.port}, index);
  for (const api::IpAddress& ip : port.external_ips) by_address_.try_emplace({ip, port.port}, index);
  for (const api::IpAddress& ip : port.load_balancer_vips) by_address_.try_emplace({ip, port.port}, index);
  if (port.node_port != 0) by_node_port_.try_emplace(port.node_port, index);
}

bool FlowCheck::is_stale(const Flow& flow) const {
  if (const auto found = by_address_.find({flow.destination, flow.destination_port}); found != by_address_.end()) {
    return !servers_[found->second].contains(flow.server);
  }
  const auto found = by_node_port_.find(flow.destination_port);
  return found != by_node_port_.end() && !servers_[found->second].contains(flow.server);
}

bool may_have_stale_flows(const MergedEndpoints& before, const MergedEndpoints& after) {
  const auto has_udp = [](const MergedEndpoints& endpoints) {
    return std::ranges::any_of(endpoints.ports, [](const auto& port) { return port.first.second == "UDP"; });
  };
  return before.ports != after.ports && (has_udp(before) || has_udp(after));
}

}  // namespace spillway::network
