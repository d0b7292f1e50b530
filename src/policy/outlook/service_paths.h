// The path of a connection to each address and port of a Service, as a proxy on one node decides it, and the reasons
// for the choice of its endpoint. policy/network decides, with the rules that the packet rules are made by. Thread: any
// (pure). Bounds: kRowsMax rows in a part. Source: Kubernetes docs, "Virtual IPs and Service Proxies".
#pragma once

#include "api/object/proxied_service.h"
#include "policy/network/endpoint_choice.h"
#include "policy/outlook/outlook.h"

#include <span>
#include <string>
#include <vector>

namespace spillway::outlook {

/// The node from which the connection is seen.
struct PathNode {
  std::string name;
  std::string zone;  // empty: none
};

/// The parts "addresses" and "endpoints". Empty: no proxy serves the Service.
std::vector<Part> service_paths(const api::ProxiedService& service, std::span<const network::SlicePtr> slices,
                                const PathNode& node);

}  // namespace spillway::outlook
