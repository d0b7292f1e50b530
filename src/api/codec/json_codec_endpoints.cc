#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/endpoints.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<EndpointAddress> auto& address) {
  v.kept("ip", address.ip);
  v.field("hostname", address.hostname);
  v.field("nodeName", address.node_name);
  v.object("targetRef", address.target);
}

template <typename V>
void describe(V& v, Is<EndpointPort> auto& port) {
  v.field("name", port.name);
  v.kept("port", port.port);
  v.field("protocol", port.protocol);
  v.field("appProtocol", port.app_protocol);
}

template <typename V>
void describe(V& v, Is<EndpointSubset> auto& subset) {
  v.list("addresses", subset.addresses);
  v.list("notReadyAddresses", subset.not_ready);
  v.list("ports", subset.ports);
}

template <typename V>
void describe(V& v, Is<Endpoints> auto& endpoints) {
  v.type_meta(Endpoints::kApiVersion, Endpoints::kKind);
  v.object("metadata", endpoints.metadata);
  v.list("subsets", endpoints.subsets);
}

template <typename V>
void describe(V& v, Is<SliceEndpoint> auto& endpoint) {
  v.kept("addresses", endpoint.addresses);
  v.nested("conditions", [&](V& conditions) {
    conditions.field("ready", endpoint.ready);
    conditions.field("serving", endpoint.serving);
    conditions.field("terminating", endpoint.terminating);
  });
  v.field("hostname", endpoint.hostname);
  v.object("targetRef", endpoint.target);
  v.field("deprecatedTopology", endpoint.deprecated_topology);
  v.field("nodeName", endpoint.node_name);
  v.field("zone", endpoint.zone);
  v.field("hints", endpoint.hints);
}

template <typename V>
void describe(V& v, Is<SlicePort> auto& port) {
  v.field("name", port.name);
  v.field("protocol", port.protocol);
  v.field("port", port.port);
  v.field("appProtocol", port.app_protocol);
}

template <typename V>
void describe(V& v, Is<EndpointSlice> auto& slice) {
  v.type_meta(EndpointSlice::kApiVersion, EndpointSlice::kKind);
  v.object("metadata", slice.metadata);
  v.kept("addressType", slice.address_type);
  v.list("endpoints", slice.endpoints);
  v.list("ports", slice.ports);
}

template struct Codec<Endpoints>;
template struct Codec<EndpointSlice>;

}  // namespace spillway::api
