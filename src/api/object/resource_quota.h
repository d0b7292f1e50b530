// v1 ResourceQuota: how much of a namespace may be there at once, and what of other objects is counted. Pods are
// counted by object/pod.h. Thread: any. Source: Kubernetes API reference, ResourceQuota.
#pragma once

#include "api/object/meta.h"
#include "api/object/pod.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// One of scopeSelector.matchExpressions.
struct QuotaScope {
  std::string scope;
  std::string op;  // "operator": In, NotIn, Exists, DoesNotExist
  std::vector<std::string> values;

  friend bool operator==(const QuotaScope&, const QuotaScope&) = default;
};

struct ResourceQuota {
  static constexpr std::string_view kKind = "ResourceQuota";
  static constexpr std::string_view kApiVersion = "v1";
  static constexpr std::string_view kTerminating = "Terminating";
  static constexpr std::string_view kNotTerminating = "NotTerminating";
  static constexpr std::string_view kBestEffort = "BestEffort";
  static constexpr std::string_view kNotBestEffort = "NotBestEffort";
  static constexpr std::string_view kPriorityClass = "PriorityClass";
  static constexpr std::string_view kCrossNamespaceAffinity = "CrossNamespacePodAffinity";

  ObjectMeta metadata;
  ResourceList hard;
  std::vector<std::string> scopes;
  std::vector<QuotaScope> scope_expressions;

  struct Status {
    ResourceList hard;
    ResourceList used;

    friend bool operator==(const Status&, const Status&) = default;
  } status;

  friend bool operator==(const ResourceQuota&, const ResourceQuota&) = default;
};

/// An object of any kind that is only counted.
struct CountedObject {
  ObjectMeta metadata;

  friend bool operator==(const CountedObject&, const CountedObject&) = default;
};

struct CountedPort {
  std::int32_t node_port = 0;

  friend bool operator==(const CountedPort&, const CountedPort&) = default;
};

struct CountedService {
  ObjectMeta metadata;
  std::string type;
  std::vector<CountedPort> ports;
  std::optional<bool> allocates_node_ports;  // "allocateLoadBalancerNodePorts"

  friend bool operator==(const CountedService&, const CountedService&) = default;
};

struct CountedClaim {
  ObjectMeta metadata;
  ResourceList requests;
  std::optional<std::string> storage_class_name;
  ResourceList allocated;  // status.allocatedResources: while a claim grows or has grown in vain

  friend bool operator==(const CountedClaim&, const CountedClaim&) = default;
};

}  // namespace spillway::api
