// The addresses and ports of services: unique ones are allocated from the cluster. Pure but for the answers of Cluster.
// Source: Kubernetes docs, "Service", "IPv4/IPv6 dual-stack"; vectors api/validation_update.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver::kinds {

inline constexpr std::string_view kClusterIp = "ClusterIP";
inline constexpr std::string_view kNodePort = "NodePort";
inline constexpr std::string_view kLoadBalancer = "LoadBalancer";
inline constexpr std::string_view kExternalName = "ExternalName";
/// The address of a service that has none.
inline constexpr std::string_view kNoAddress = "None";

bool is_headless(const api::Json& spec);
bool needs_cluster_ip(const api::Json& spec);
bool needs_node_ports(const api::Json& spec);
bool needs_health_check_port(const api::Json& spec);
/// Reachable from outside: ports of nodes, or addresses of its own.
bool is_external(const api::Json& spec);

/// Checks that clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy agree. Fields start with "spec". `before`: the spec
/// that an update replaces, whose addresses may stay in the form in which they were written; null: there is none.
void validate_addresses(const api::Json& spec, const api::Json& before, api::FieldErrors& errors);

/// clusterIP and clusterIPs of a new service in step, where the client left one of them out.
void join_addresses(api::Json& spec);
/// Defaults for an update: allocated values that the update leaves out stay.
void join_addresses(api::Json& spec, const api::Json& old_spec);

/// Fills in families and policy where the client left them out, then allocates addresses and ports. Refuses families
/// that this cluster does not have (IPv6), and values that are already allocated.
api::StatusResult<void> allocate(api::Json& service, const api::Json* old, const AdmissionContext& context);

/// The names that are unique to this service: "ip/10.96.0.7", "port/TCP/30080".
std::vector<std::string> reserved_by(const api::Json& service);

}  // namespace spillway::apiserver::kinds
