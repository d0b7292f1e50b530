// The objects by which clients inside a cluster find its API servers: the Service `kubernetes` of the namespace
// `default`, the Endpoints and the EndpointSlices behind it, in their wanted state. Thread: any (pure). Source:
// Kubernetes docs, "Accessing the API from within a Pod"; upstream's controller "kubernetesservice".
#pragma once

#include "api/json/json.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// An address at which pods reach an API server over TLS.
struct ServingAddress {
  std::string ip;  // valid in endpoints: neither loopback nor link-local nor multicast
  bool is_v4 = true;
  std::uint16_t port = 0;

  friend auto operator<=>(const ServingAddress&, const ServingAddress&) = default;
};

/// "10.0.0.1:6443", "[2001:db8::1]:6443". nullopt: anything else, and addresses that endpoints may not have.
std::optional<ServingAddress> parse_serving_address(std::string_view text);

/// True: an address as text that endpoints may have.
bool may_be_endpoint(std::string_view ip);

/// The three sorts of objects have name, labels and their own content; no more than is restored after a change by a
/// client.
api::Json kubernetes_service(std::uint16_t port);
/// `addresses`: sorted.
api::Json kubernetes_endpoints(const std::vector<ServingAddress>& addresses);
/// True if a server has written these Endpoints, or this slice.
bool is_kept(const api::Json& document);
/// One for each family and port; the first of IPv4 is named like the Service.
std::vector<api::Json> kubernetes_slices(const std::vector<ServingAddress>& addresses);

}  // namespace spillway::apiserver
