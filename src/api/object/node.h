// v1.Node as the engines see it.
// Thread: any. Source: Kubernetes API reference, "Node".
#pragma once

#include "api/object/meta.h"
#include "api/object/pod.h"
#include "api/object/taint.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::api {

struct NodeCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::optional<WallTime> last_heartbeat_time;
  std::optional<WallTime> last_transition_time;

  friend bool operator==(const NodeCondition&, const NodeCondition&) = default;
};

struct NodeAddress {
  std::string type;
  std::string address;

  friend bool operator==(const NodeAddress&, const NodeAddress&) = default;
};

struct NodeSystemInfo {
  std::string machine_id;
  std::string system_uuid;
  std::string boot_id;
  std::string kernel_version;
  std::string os_image;
  std::string container_runtime_version;
  std::string kubelet_version;
  std::string kube_proxy_version;
  std::string operating_system;
  std::string architecture;

  friend bool operator==(const NodeSystemInfo&, const NodeSystemInfo&) = default;
};

struct ContainerImage {
  std::vector<std::string> names;
  std::int64_t size_bytes = 0;

  friend bool operator==(const ContainerImage&, const ContainerImage&) = default;
};

struct NodeRuntimeHandlerFeatures {
  std::optional<bool> recursive_read_only_mounts;
  std::optional<bool> user_namespaces;

  friend bool operator==(const NodeRuntimeHandlerFeatures&, const NodeRuntimeHandlerFeatures&) = default;
};

struct NodeRuntimeHandler {
  std::string name;  // empty: the default handler
  std::optional<NodeRuntimeHandlerFeatures> features;

  friend bool operator==(const NodeRuntimeHandler&, const NodeRuntimeHandler&) = default;
};

struct AttachedVolume {
  std::string name;
  std::string device_path;

  friend bool operator==(const AttachedVolume&, const AttachedVolume&) = default;
};

struct NodeFeatures {
  std::optional<bool> supplemental_groups_policy;

  friend bool operator==(const NodeFeatures&, const NodeFeatures&) = default;
};

struct NodeSpec {
  std::string provider_id;
  std::vector<std::string> pod_cidrs;
  bool unschedulable = false;
  std::vector<Taint> taints;

  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

struct NodeStatus {
  ResourceList capacity;
  ResourceList allocatable;
  std::vector<NodeCondition> conditions;
  std::vector<NodeAddress> addresses;
  NodeSystemInfo node_info;
  std::optional<std::int32_t> kubelet_port;  // daemonEndpoints.kubeletEndpoint.Port
  std::vector<ContainerImage> images;
  std::vector<std::string> volumes_in_use;
  std::vector<AttachedVolume> volumes_attached;
  std::vector<NodeRuntimeHandler> runtime_handlers;
  std::optional<NodeFeatures> features;
  std::vector<std::string> declared_features;  // sorted names; empty also for nodes that declare none
  std::string phase;                           // not written any more
  std::string config_error;                    // config.error

  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

struct Node {
  static constexpr std::string_view kKind = "Node";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  NodeSpec spec;
  NodeStatus status;

  friend bool operator==(const Node&, const Node&) = default;
};

const NodeCondition* find_condition(const std::vector<NodeCondition>& conditions, std::string_view type);

}  // namespace spillway::api
