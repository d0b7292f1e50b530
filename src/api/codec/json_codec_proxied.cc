#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/proxied_service.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<ProxiedPort> auto& port) {
  v.field("name", port.name);
  v.field("protocol", port.protocol);
  v.field("port", port.port);
  v.field("nodePort", port.node_port);
}

template <typename V>
void describe(V& v, Is<IngressAddress> auto& address) {
  v.field("ip", address.ip);
  v.field("ipMode", address.ip_mode);
}

template <typename V>
void describe(V& v, Is<ProxiedService> auto& service) {
  v.type_meta(ProxiedService::kApiVersion, ProxiedService::kKind);
  v.object("metadata", service.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("type", service.type);
    spec.field("clusterIP", service.cluster_ip);
    spec.field("clusterIPs", service.cluster_ips);
    spec.field("ipFamilies", service.ip_families);
    spec.field("externalIPs", service.external_ips);
    spec.field("loadBalancerSourceRanges", service.source_ranges);
    spec.field("loadBalancerClass", service.load_balancer_class);
    spec.field("sessionAffinity", service.session_affinity);
    spec.nested("sessionAffinityConfig", [&](V& config) {
      config.nested("clientIP", [&](V& client) { client.field("timeoutSeconds", service.affinity_seconds); });
    });
    spec.field("externalTrafficPolicy", service.external_traffic_policy);
    spec.field("internalTrafficPolicy", service.internal_traffic_policy);
    spec.field("healthCheckNodePort", service.health_check_node_port);
    spec.list("ports", service.ports);
  });
  v.nested("status", [&](V& status) {
    status.nested("loadBalancer", [&](V& balancer) { balancer.list("ingress", service.ingress); });
  });
}

template struct Codec<ProxiedService>;

}  // namespace spillway::api
