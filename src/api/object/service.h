// v1 Service, as far as nodes and the scheduler read it: its address, its ports, whom it selects.
// Thread: any. Source: Kubernetes API reference, Service.
#pragma once

#include "api/object/meta.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::api {

struct ServicePort {
  std::string name;
  std::string protocol;  // "TCP"
  std::int32_t port = 0;

  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

struct Service {
  static constexpr std::string_view kKind = "Service";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::string cluster_ip;  // empty or "None": it has none
  std::vector<ServicePort> ports;
  StringMap selector;  // empty: it selects nobody

  friend bool operator==(const Service&, const Service&) = default;
};

}  // namespace spillway::api
