// A Service as DNS reads it: the addresses, ports or other name to which its name resolves. Narrower than Service,
// which nodes and controllers keep in great numbers. Thread: any (plain values). Source: Kubernetes API reference,
// Service.
#pragma once

#include "api/object/meta.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

struct ServicePortName {
  std::string name;
  std::string protocol;  // empty: TCP
  std::int32_t port = 0;

  friend bool operator==(const ServicePortName&, const ServicePortName&) = default;
};

struct NamedService {
  static constexpr std::string_view kKind = "Service";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::string type;                      // ClusterIP, NodePort, LoadBalancer, ExternalName
  std::string cluster_ip;                // empty or "None": it has none
  std::vector<std::string> cluster_ips;  // one of each family; the first is cluster_ip. Empty in old objects
  std::string external_name;             // the name to which an ExternalName resolves
  std::vector<ServicePortName> ports;

  friend bool operator==(const NamedService&, const NamedService&) = default;
};

}  // namespace spillway::api
