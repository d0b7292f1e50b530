// v1 Endpoints and discovery.k8s.io/v1 EndpointSlice: the addresses behind a Service. Thread: any (plain values).
// Source: Kubernetes API reference, "Endpoints", "EndpointSlice".
#pragma once

#include "api/json/json.h"
#include "api/object/event.h"
#include "api/object/meta.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

struct EndpointAddress {
  std::string ip;
  std::string hostname;
  std::optional<std::string> node_name;
  std::optional<ObjectReference> target;

  friend bool operator==(const EndpointAddress&, const EndpointAddress&) = default;
};

struct EndpointPort {
  std::string name;
  std::int32_t port = 0;
  std::string protocol;
  std::optional<std::string> app_protocol;

  friend auto operator<=>(const EndpointPort&, const EndpointPort&) = default;
};

struct EndpointSubset {
  std::vector<EndpointAddress> addresses;
  std::vector<EndpointAddress> not_ready;
  std::vector<EndpointPort> ports;

  friend bool operator==(const EndpointSubset&, const EndpointSubset&) = default;
};

struct Endpoints {
  static constexpr std::string_view kKind = "Endpoints";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::vector<EndpointSubset> subsets;

  friend bool operator==(const Endpoints&, const Endpoints&) = default;
};

struct SliceEndpoint {
  std::vector<std::string> addresses;
  std::optional<bool> ready;
  std::optional<bool> serving;
  std::optional<bool> terminating;
  std::optional<std::string> hostname;
  std::optional<ObjectReference> target;
  std::optional<std::string> node_name;
  std::optional<std::string> zone;
  Json hints;                // null if absent
  Json deprecated_topology;  // null if absent

  friend bool operator==(const SliceEndpoint&, const SliceEndpoint&) = default;
};

struct SlicePort {
  std::optional<std::string> name;
  std::optional<std::string> protocol;
  std::optional<std::int32_t> port;
  std::optional<std::string> app_protocol;

  friend auto operator<=>(const SlicePort&, const SlicePort&) = default;
};

struct EndpointSlice {
  static constexpr std::string_view kKind = "EndpointSlice";
  static constexpr std::string_view kApiVersion = "discovery.k8s.io/v1";
  ObjectMeta metadata;
  std::string address_type;  // IPv4, IPv6, FQDN
  std::vector<SliceEndpoint> endpoints;
  std::vector<SlicePort> ports;

  friend bool operator==(const EndpointSlice&, const EndpointSlice&) = default;
};

}  // namespace spillway::api
