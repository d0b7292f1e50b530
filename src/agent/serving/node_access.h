// The right that a request needs at a server other than the API server: a verb on a subresource of a node, or on a
// path. Thread: any (pure). Source: Kubernetes docs, "Kubelet authentication/authorization", "Authorization"; KEP-2862;
// vectors kubelet-surface/kubelet_authz.
#pragma once

#include "agent/contract/gate_settings.h"
#include "api/exchange/exchange.h"

#include <string>
#include <string_view>

namespace spillway::agent {

/// The attributes of a SubjectAccessReview: a verb on a subresource of the node, or on a path.
struct NodeAccess {
  std::string verb;         // empty: no method that has one
  std::string subresource;  // "stats", "metrics", "log", "checkpoint", else "proxy"
  std::string path;         // not empty: a path that is no resource; `subresource` is unused
  /// The subresource whose right is also enough, checked when the first one is denied; empty: there is none.
  std::string fallback = {};

  friend bool operator==(const NodeAccess&, const NodeAccess&) = default;
};

/// The verb of a method: "get", "create"; empty for HEAD, OPTIONS and unknown methods.
std::string_view verb_of(api::Method method);

/// The right to a path of a node's server. `path`: without query, as the client spelt it.
NodeAccess node_access(std::string_view verb, std::string_view path, FineGrained fine_grained);

/// The right to a path of a server that is not a node's. `target`: the one that the request is routed by.
NodeAccess path_access(api::Method method, const api::Target& target);

}  // namespace spillway::agent
