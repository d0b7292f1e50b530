// v1 Service, as far as nodes, the scheduler and the controllers of endpoints read it: its address, its ports, its
// selector.
// Thread: any. Source: Kubernetes API reference, Service.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::api {

struct ServicePort {
  std::string name;
  std::string protocol;  // "TCP"
  std::int32_t port = 0;
  Json target_port;  // null if absent; a number, or the name of a port of the pod
  std::optional<std::string> app_protocol;

  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

struct Service {
  static constexpr std::string_view kKind = "Service";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::string type;        // ClusterIP, NodePort, LoadBalancer, ExternalName
  std::string cluster_ip;  // empty or "None": it has none
  std::vector<std::string> ip_families;
  bool publish_not_ready = false;  // publishNotReadyAddresses
  std::vector<ServicePort> ports;
  std::string traffic_distribution;  // PreferSameZone, PreferClose (the same), PreferSameNode; empty: none is requested
  StringMap selector;                // empty: it selects no pods

  friend bool operator==(const Service&, const Service&) = default;
};

}  // namespace spillway::api
