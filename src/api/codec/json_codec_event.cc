#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/named_service.h"
#include "api/object/service.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<Event> auto& event) {
  v.type_meta(Event::kApiVersion, Event::kKind);
  v.kept_object("metadata", event.metadata);
  v.kept_object("involvedObject", event.involved_object);
  v.field("type", event.type);
  v.field("reason", event.reason);
  v.field("message", event.message);
  v.nested("source", [&](V& source) {
    source.field("component", event.source_component);
    source.field("host", event.source_host);
  });
  v.kept("reportingComponent", event.reporting_component);
  v.kept("reportingInstance", event.reporting_instance);
  v.field("firstTimestamp", event.first_timestamp);
  v.field("lastTimestamp", event.last_timestamp);
  v.field("count", event.count);
}

template <typename V>
void describe(V& v, Is<Lease> auto& lease) {
  v.type_meta(Lease::kApiVersion, Lease::kKind);
  v.object("metadata", lease.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("holderIdentity", lease.holder_identity);
    spec.field("leaseDurationSeconds", lease.lease_duration_seconds);
    spec.micro_time("acquireTime", lease.acquire_time);
    spec.micro_time("renewTime", lease.renew_time);
    spec.field("leaseTransitions", lease.lease_transitions);
  });
}

template <typename V>
void describe(V& v, Is<ServicePort> auto& port) {
  v.field("name", port.name);
  v.field("protocol", port.protocol);
  v.field("port", port.port);
  v.field("targetPort", port.target_port);
  v.field("appProtocol", port.app_protocol);
}

template <typename V>
void describe(V& v, Is<Service> auto& service) {
  v.type_meta(Service::kApiVersion, Service::kKind);
  v.object("metadata", service.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("type", service.type);
    spec.field("clusterIP", service.cluster_ip);
    spec.field("ipFamilies", service.ip_families);
    spec.field("publishNotReadyAddresses", service.publish_not_ready);
    spec.field("trafficDistribution", service.traffic_distribution);
    spec.list("ports", service.ports);
    spec.field("selector", service.selector);
  });
}

template <typename V>
void describe(V& v, Is<ServicePortName> auto& port) {
  v.field("name", port.name);
  v.field("protocol", port.protocol);
  v.field("port", port.port);
}

template <typename V>
void describe(V& v, Is<NamedService> auto& service) {
  v.type_meta(NamedService::kApiVersion, NamedService::kKind);
  v.object("metadata", service.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("type", service.type);
    spec.field("clusterIP", service.cluster_ip);
    spec.field("clusterIPs", service.cluster_ips);
    spec.field("externalName", service.external_name);
    spec.list("ports", service.ports);
  });
}

template struct Codec<Event>;
template struct Codec<Lease>;
template struct Codec<NamedService>;
template struct Codec<Service>;

}  // namespace spillway::api
