// Inputs of the resolvers of a node's pods, beside the pods.
// Thread: any (values). Source: spec "Pod lifecycle", 6.9.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct DnsFacts {
  std::vector<std::string> cluster_dns;
  std::string cluster_domain;
  /// The text of the machine's file, or why it cannot be read: then no pod gets a resolver. nullopt: no file is
  /// configured, and pods with the machine's resolver use the machine's own.
  std::optional<Result<std::string>> resolv_conf;
  std::string resolver_path;  // path of that file, for messages
  std::vector<std::string> node_ips;
};

}  // namespace spillway::agent
