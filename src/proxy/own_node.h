// Packet rules depend on the node besides Services: on flags, the Node object, addresses of its interfaces.
// Thread: any (values).
#pragma once

#include "api/object/node.h"
#include "policy/network/rule_settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::proxy {

/// Names are kube-proxy's (KubeProxyConfiguration).
enum class DetectLocalMode : std::uint8_t { kClusterCidr, kNodeCidr, kBridgeInterface, kInterfaceNamePrefix };

struct Settings {
  std::string node_name;
  std::vector<network::Family> families = {network::Family::kIPv4, network::Family::kIPv6};
  std::vector<std::string> bind_addresses;  // in place of those of the Node object; at most one a family
  DetectLocalMode detect_local_mode = DetectLocalMode::kClusterCidr;
  std::vector<std::string> cluster_cidrs;
  std::string bridge_interface;
  std::string interface_name_prefix;
  std::vector<std::string> node_port_addresses;  // address ranges, or the word "primary"; empty: primary
  std::vector<std::string> service_cidrs;        // empty: unknown
  bool masquerade_all = false;
  std::uint32_t masquerade_mark = 0x4000;
};

/// `node`: null if it is not there. `interface_addresses`: "192.0.2.1/24" or "192.0.2.1".
network::RuleSettings rule_settings(const Settings& settings, network::Family family, const api::Node* node,
                                    const std::vector<std::string>& interface_addresses);

/// The node takes new connections of load balancers: it is not being deleted, and the autoscaler does not take it away.
bool is_eligible(const api::Node& node);

}  // namespace spillway::proxy
