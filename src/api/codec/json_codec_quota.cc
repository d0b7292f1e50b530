#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/resource_quota.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<QuotaScope> auto& scope) {
  v.kept("scopeName", scope.scope);
  v.kept("operator", scope.op);
  v.field("values", scope.values);
}

template <typename V>
void describe(V& v, Is<ResourceQuota> auto& quota) {
  v.type_meta(ResourceQuota::kApiVersion, ResourceQuota::kKind);
  v.object("metadata", quota.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("hard", quota.hard);
    spec.field("scopes", quota.scopes);
    spec.nested("scopeSelector", [&](V& selector) { selector.list("matchExpressions", quota.scope_expressions); });
  });
  v.nested("status", [&](V& status) {
    status.field("hard", quota.status.hard);
    status.field("used", quota.status.used);
  });
}

template <typename V>
void describe(V& v, Is<CountedObject> auto& object) {
  v.object("metadata", object.metadata);
}

template <typename V>
void describe(V& v, Is<CountedPort> auto& port) {
  v.field("nodePort", port.node_port);
}

template <typename V>
void describe(V& v, Is<CountedService> auto& service) {
  v.object("metadata", service.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("type", service.type);
    spec.list("ports", service.ports);
    spec.field("allocateLoadBalancerNodePorts", service.allocates_node_ports);
  });
}

template <typename V>
void describe(V& v, Is<CountedClaim> auto& claim) {
  v.object("metadata", claim.metadata);
  v.nested("spec", [&](V& spec) {
    spec.nested("resources", [&](V& resources) { resources.field("requests", claim.requests); });
    spec.field("storageClassName", claim.storage_class_name);
  });
  v.nested("status", [&](V& status) { status.field("allocatedResources", claim.allocated); });
}

template struct Codec<ResourceQuota>;
template struct Codec<CountedObject>;
template struct Codec<CountedService>;
template struct Codec<CountedClaim>;

}  // namespace spillway::api
