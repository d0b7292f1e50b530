// A Service as a proxy on a node reads it: its addresses and ports, and the policies of its traffic. Narrower than
// Service, which nodes and controllers keep in great numbers. Thread: any (plain values).
// Source: Kubernetes API reference, Service.
#pragma once

#include "api/object/meta.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

struct ProxiedPort {
  std::string name;
  std::string protocol;  // empty: TCP
  std::int32_t port = 0;
  std::int32_t node_port = 0;  // 0: none

  friend bool operator==(const ProxiedPort&, const ProxiedPort&) = default;
};

/// One of status.loadBalancer.ingress.
struct IngressAddress {
  std::string ip;  // empty: a host name only
  std::optional<std::string> ip_mode;

  friend bool operator==(const IngressAddress&, const IngressAddress&) = default;
};

struct ProxiedService {
  static constexpr std::string_view kKind = "Service";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::string type;
  std::string cluster_ip;
  std::vector<std::string> cluster_ips;
  std::vector<std::string> ip_families;
  std::vector<std::string> external_ips;
  std::vector<std::string> source_ranges;  // loadBalancerSourceRanges
  std::string load_balancer_class;         // empty: that of the cluster
  std::string session_affinity;            // None, ClientIP
  std::optional<std::int32_t> affinity_seconds;
  std::string external_traffic_policy;
  std::string internal_traffic_policy;
  std::int32_t health_check_node_port = 0;
  std::vector<ProxiedPort> ports;
  std::vector<IngressAddress> ingress;

  friend bool operator==(const ProxiedService&, const ProxiedService&) = default;
};

}  // namespace spillway::api
