// The addresses a node reports.
// Thread: any (pure: answers of name servers and interfaces are arguments). Source: Kubernetes docs, "Node Status",
// addresses; spec "Node agent", 4.1; vectors node-agent/node_status_setters.
#pragma once

#include "agent/contract/options.h"
#include "api/object/node.h"
#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct AddressFacts {
  std::string hostname;
  /// --node-ip: at most two, the family of the first is preferred. "0.0.0.0" and "::" name only the family.
  std::vector<std::string> node_ips;
  CloudProvider cloud_provider = CloudProvider::kNone;
  /// The addresses to which the node's name resolves.
  std::vector<std::string> dns_answers;
  /// The address of the interface of the default route, or the error for which there is none.
  Result<std::string> default_route_ip = std::string();
  /// True if an interface of this machine has the address. Empty function: always true.
  std::function<bool(const std::string& ip)> on_host;
  bool loopback_allowed = false;  // nodes of a machine of their own; upstream: never
};

/// Sets the addresses and the annotation of the provided IP. kInvalid: an impossible node IP, or none found; the
/// addresses are not changed.
Outcome set_addresses(api::Node& node, const AddressFacts& facts);

}  // namespace spillway::agent
