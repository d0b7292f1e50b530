// The name in a path to the proxy of a pod or service: which object, at which port, by which scheme.
// Thread: any (pure). Source: Kubernetes docs, "Access Services Running on Clusters", manually constructing proxy URLs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::apiserver {

struct ProxiedName {
  bool tls = false;  // scheme "https"
  std::string name;  // not empty
  std::string port;  // a number, the name of a service's port, or empty: as the object specifies

  friend bool operator==(const ProxiedName&, const ProxiedName&) = default;
};

/// "web", "web:8080", "https:web:8080", "https:web:". The scheme is "http", "https" or empty. nullopt: anything else.
std::optional<ProxiedName> parse_proxied_name(std::string_view text);

}  // namespace spillway::apiserver
