// The parts of a request to a proxy that are forwarded to the server behind it, and the parts of its answer that are
// returned: the path below the proxy, headers, the target of a redirect. Credentials are never forwarded, and no answer
// speaks for this server's origin.
// Thread: any (pure). Source: Kubernetes 1.32, k8s.io/apimachinery util/proxy; RFC 9110, 7.6.1.
#pragma once

#include "api/exchange/exchange.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

/// A path to a proxy, divided. Bytes that a path or query may not have are encoded.
struct ProxiedPath {
  std::string prefix;  // ".../pods/web/proxy"
  std::string below;   // the rest of the path: empty, or begins with "/"
  std::string query;   // with its "?"; empty: none

  std::string target() const { return (below.empty() ? "/" : below) + query; }
};

/// `prefix_segments`: how many segments of the path lead to the proxy, its own name included.
ProxiedPath proxied_path(const api::Request& request, const api::Target& target, std::size_t prefix_segments);

/// The redirect of a GET or HEAD of the proxy itself without a slash at the end, so that relative links lead below the
/// proxy. nullopt: none is needed.
std::optional<std::string> place_with_slash(api::Method method, const ProxiedPath& path);

/// True if the client requests an upgrade to any protocol.
bool wants_upgrade(const api::Request& request);

/// The headers of the request as the server behind the proxy gets them: all but those of the connection, of its
/// framing, and those by which a client shows who it is; X-Forwarded-Uri, -Host, -Proto are ours, and the client's
/// address is added to X-Forwarded-For. `scheme`: that this server speaks. "host" is the client's.
api::HeaderList forwarded_headers(const api::Request& request, const ProxiedPath& path, std::string_view scheme);

/// The host names by which an answer may mean the server behind the proxy.
struct ProxiedHosts {
  std::string server;  // "10.0.0.7:8080"
  std::string client;  // as the client calls this server; may be empty
};

/// A Location of an answer as the client has to follow it: below the prefix, if it is a path of the same server.
std::string returned_location(const std::string& location, const ProxiedPath& path, const ProxiedHosts& hosts);

/// The headers of an answer, Content-Type included: without those of the connection and its framing, and those that
/// would apply to every page of this server.
api::HeaderList returned_headers(const api::Response& response, const ProxiedPath& path, const ProxiedHosts& hosts);

}  // namespace spillway::apiserver
