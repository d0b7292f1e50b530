// Finds the server behind the proxy of a pod or service. The address is taken from the present object and checked here,
// and the connection is made to the very value that was checked.
// Thread: any (pure). Source: Kubernetes 1.32, ResourceLocation of pods and services.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/ports/pod_gateway.h"
#include "apiserver/proxy/proxied_name.h"
#include "base/rng.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// The text of an address that a pod may have, as digits in one form. nullopt: no address, or one that leads back to
/// this machine, to its link, to many (loopback, unspecified, 0.0.0.0/8, link-local, multicast, broadcast), also where
/// it is an IPv4 address inside an IPv6 one, or to the metadata of a cloud's machine (fd00:ec2::254). What a translator
/// or tunnel leads to (64:ff9b::/96, 64:ff9b:1::/48, 2002::/16, ::ffff:0:0:0/96) is refused as a whole.
std::optional<std::string> proxyable_address(std::string_view text);

/// The server of that pod: at the requested port, else at the first that its containers declare, else at that of the
/// scheme. kBadRequest "address not allowed": it has no address, or none that is proxyable. kServiceUnavailable: the
/// port is none, or the pod has ended, so that its address may belong to another pod by now.
api::StatusResult<PodServer> server_of_pod(const ProxiedName& asked, const api::Json& pod);

/// A pod by its name, in the namespace of the service; nullopt: there is none.
using FindPod = std::function<std::optional<api::Json>(std::string_view name)>;

/// One of the addresses in `endpoints` that serve the requested port, by its number or name, drawn with `rng`: it must
/// belong to a pod in the namespace that has this address and is not being deleted. At most 16 addresses are tried.
/// `service` is read only for a port number, and may be null else. kServiceUnavailable: the service has no such port,
/// or no endpoint.
api::StatusResult<PodServer> server_of_service(const ProxiedName& asked, const api::Json* service,
                                               const api::Json& endpoints, std::string_view ns, const FindPod& find_pod,
                                               Rng& rng);

/// True if the port is requested by its number.
bool asks_for_number(const ProxiedName& asked);

}  // namespace spillway::apiserver
