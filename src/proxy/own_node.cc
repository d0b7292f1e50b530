#include "proxy/own_node.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::proxy {
namespace {

std::optional<api::IpAddress> ip_of(const Settings& settings, network::Family family, const api::Node* node) {
  const auto bound = network::addresses_in(settings.bind_addresses, family);
  if (!bound.empty() && !bound.front().is_unspecified()) return bound.front();
  if (node == nullptr) return std::nullopt;
  for (const api::NodeAddress& each : node->status.addresses) {
    if (each.type != "InternalIP") continue;
    const auto address = api::parse_ip(each.address);
    if (address && network::family_of(*address) == family) return address;
  }
  return std::nullopt;
}

network::LocalDetector source_in(const std::vector<std::string>& ranges, network::Family family) {
  const auto of_family = network::ranges_in(ranges, family);
  if (of_family.empty()) return {};
  return {.by = network::LocalDetector::By::kSource, .range = of_family.front(), .interface = {}};
}

network::LocalDetector detector_of(const Settings& settings, network::Family family, const api::Node* node) {
  using By = network::LocalDetector::By;
  const auto by_interface = [](By by, const std::string& name) {
    return network::LocalDetector{.by = name.empty() ? By::kNothing : by, .range = {}, .interface = name};
  };
  switch (settings.detect_local_mode) {
    case DetectLocalMode::kClusterCidr:
      return source_in(settings.cluster_cidrs, family);
    case DetectLocalMode::kNodeCidr:
      return node != nullptr ? source_in(node->spec.pod_cidrs, family) : network::LocalDetector{};
    case DetectLocalMode::kBridgeInterface:
      return by_interface(By::kInterface, settings.bridge_interface);
    case DetectLocalMode::kInterfaceNamePrefix:
      return by_interface(By::kInterfacePrefix, settings.interface_name_prefix);
  }
  return {};
}

network::NodePortAddresses node_ports_at(const Settings& settings, network::Family family,
                                         const std::optional<api::IpAddress>& node_ip,
                                         const std::vector<std::string>& interface_addresses) {
  const bool primary = settings.node_port_addresses.empty() ||
                       (settings.node_port_addresses.size() == 1 && settings.node_port_addresses.front() == "primary");
  if (!primary) return network::node_port_addresses(settings.node_port_addresses, interface_addresses, family);
  network::NodePortAddresses out;
  if (node_ip) out.addresses.push_back(*node_ip);
  return out;
}

}  // namespace

network::RuleSettings rule_settings(const Settings& settings, network::Family family, const api::Node* node,
                                    const std::vector<std::string>& interface_addresses) {
  network::RuleSettings out;
  out.family = family;
  out.detector = detector_of(settings, family, node);
  out.masquerade_all = settings.masquerade_all;
  out.masquerade_mark = settings.masquerade_mark;
  out.node_ip = ip_of(settings, family, node);
  out.node_port_addresses = node_ports_at(settings, family, out.node_ip, interface_addresses);
  out.service_ranges = network::ranges_in(settings.service_cidrs, family);
  if (node != nullptr) {
    if (const auto zone = node->metadata.labels.find("topology.kubernetes.io/zone");
        zone != node->metadata.labels.end()) {
      out.zone = zone->second;
    }
  }
  return out;
}

bool is_eligible(const api::Node& node) {
  return !node.metadata.deletion_timestamp && std::ranges::none_of(node.spec.taints, [](const api::Taint& taint) {
    return taint.key == "ToBeDeletedByClusterAutoscaler";
  });
}

}  // namespace spillway::proxy
