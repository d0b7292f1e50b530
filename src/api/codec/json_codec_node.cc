#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<NodeCondition> auto& condition) {
  v.kept("type", condition.type);
  v.kept("status", condition.status);
  v.field("reason", condition.reason);
  v.field("message", condition.message);
  v.field("lastHeartbeatTime", condition.last_heartbeat_time);
  v.field("lastTransitionTime", condition.last_transition_time);
}

template <typename V>
void describe(V& v, Is<NodeAddress> auto& address) {
  v.kept("type", address.type);
  v.kept("address", address.address);
}

template <typename V>
void describe(V& v, Is<NodeSystemInfo> auto& info) {
  v.field("machineID", info.machine_id);
  v.field("systemUUID", info.system_uuid);
  v.field("bootID", info.boot_id);
  v.field("kernelVersion", info.kernel_version);
  v.field("osImage", info.os_image);
  v.field("containerRuntimeVersion", info.container_runtime_version);
  v.field("kubeletVersion", info.kubelet_version);
  v.field("kubeProxyVersion", info.kube_proxy_version);
  v.field("operatingSystem", info.operating_system);
  v.field("architecture", info.architecture);
}

template <typename V>
void describe(V& v, Is<ContainerImage> auto& image) {
  v.kept("names", image.names);
  v.field("sizeBytes", image.size_bytes);
}

template <typename V>
void describe(V& v, Is<NodeRuntimeHandlerFeatures> auto& features) {
  v.field("recursiveReadOnlyMounts", features.recursive_read_only_mounts);
  v.field("userNamespaces", features.user_namespaces);
}

template <typename V>
void describe(V& v, Is<NodeRuntimeHandler> auto& handler) {
  v.kept("name", handler.name);
  v.object("features", handler.features);
}

template <typename V>
void describe(V& v, Is<AttachedVolume> auto& volume) {
  v.kept("name", volume.name);
  v.kept("devicePath", volume.device_path);
}

template <typename V>
void describe(V& v, Is<NodeFeatures> auto& features) {
  v.field("supplementalGroupsPolicy", features.supplemental_groups_policy);
}

template <typename V>
void describe(V& v, Is<NodeSpec> auto& spec) {
  v.field("providerID", spec.provider_id);
  v.field("podCIDRs", spec.pod_cidrs);
  v.field("unschedulable", spec.unschedulable);
  v.list("taints", spec.taints);
}

template <typename V>
void describe(V& v, Is<NodeStatus> auto& status) {
  v.field("capacity", status.capacity);
  v.field("allocatable", status.allocatable);
  v.list("conditions", status.conditions, "type", &NodeCondition::type);
  v.list("addresses", status.addresses);
  v.object("nodeInfo", status.node_info);
  v.nested("daemonEndpoints", [&](V& endpoints) {
    endpoints.nested("kubeletEndpoint", [&](V& endpoint) { endpoint.field("Port", status.kubelet_port); });
  });
  v.list("images", status.images);
  v.field("volumesInUse", status.volumes_in_use);
  v.list("volumesAttached", status.volumes_attached);
  v.list("runtimeHandlers", status.runtime_handlers);
  v.object("features", status.features);
  v.field("declaredFeatures", status.declared_features);
  v.field("phase", status.phase);
  v.nested("config", [&](V& config) { config.field("error", status.config_error); });
}

template <typename V>
void describe(V& v, Is<Node> auto& node) {
  v.type_meta(Node::kApiVersion, Node::kKind);
  v.object("metadata", node.metadata);
  v.object("spec", node.spec);
  v.object("status", node.status);
}

template struct Codec<Node>;
template struct Codec<NodeStatus>;

}  // namespace spillway::api
