// The ports of a Service in one address family, as a proxy serves them: addresses, policies, affinity.
// Thread: any (values). Source: Kubernetes docs, "Service", "Virtual IPs and Service Proxies".
#pragma once

#include "api/object/meta.h"
#include "api/object/proxied_service.h"
#include "policy/network/addresses.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::network {

/// The query of a list of Services or EndpointSlices without those that another program serves, and those of headless
/// Services.
inline constexpr std::string_view kProxiedSelector =
    "labelSelector=%21service.kubernetes.io%2Fservice-proxy-name%2C%21service.kubernetes.io%2Fheadless";

/// The same rule, for labels.
bool is_proxied(const api::StringMap& labels);

struct PortKey {
  std::string ns;
  std::string service;
  std::string port;      // empty: the port has no name
  std::string protocol;  // "TCP", "UDP", "SCTP"

  friend auto operator<=>(const PortKey&, const PortKey&) = default;

  /// "ns/service:port", or "ns/service" without a name of the port.
  std::string text() const;
};

struct ServicePort {
  PortKey key;
  std::int32_t port = 0;
  std::int32_t node_port = 0;  // 0: none
  api::IpAddress cluster_ip;
  std::vector<api::IpAddress> external_ips;
  std::vector<api::IpAddress> load_balancer_vips;
  std::vector<api::IpRange> source_ranges;  // ranges of this family; empty: VIPs are open to all
  std::int32_t affinity_seconds = 0;        // 0: no affinity of clients
  bool external_policy_local = false;
  bool internal_policy_local = false;
  std::int32_t health_check_node_port = 0;  // 0: none

  bool is_externally_accessible() const;
  bool uses_cluster_endpoints() const;
  bool uses_local_endpoints() const;

  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

/// Sorted by key. Empty: the Service has no address in the family, or none that a proxy serves.
std::vector<ServicePort> service_ports(const api::ProxiedService& service, Family family);

/// The addresses of a node at which node ports answer.
struct NodePortAddresses {
  bool matches_all = false;               // each address of the node but loopback
  std::vector<api::IpAddress> addresses;  // sorted; loopback addresses have no effect

  friend bool operator==(const NodePortAddresses&, const NodePortAddresses&) = default;
};

/// `ranges`: as the operator gave them. `of_interfaces`: "192.0.2.1/24" or "192.0.2.1", of all interfaces.
NodePortAddresses node_port_addresses(std::span<const std::string> ranges, std::span<const std::string> of_interfaces,
                                      Family family);

}  // namespace spillway::network
