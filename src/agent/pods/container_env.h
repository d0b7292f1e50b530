// The command line and environment of a container: fields of the pod, and $(NAME) references to earlier variables.
// Thread: any (pure). Source: Kubernetes docs, "Define Environment Variables for a Container", "Expose Pod Information
// to Containers Through Environment Variables"; API reference, Container.command.
#pragma once

#include "api/pod.h"
#include "base/error.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::agent {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Addresses a pod's fields may refer to.
struct PodAddresses {
  std::string host_ip;
  std::string pod_ip;
};

/// $(NAME) → value of NAME; $$ → $; a reference to an unknown name stays as it is.
std::string expand(std::string_view text, const Environment& variables);

/// "metadata.name", "metadata.labels['app']", "spec.nodeName", "status.podIP", … kInvalid: no field that pods expose.
Result<std::string> field_of(const api::Pod& pod, const PodAddresses& addresses, std::string_view field_path);

/// PATH and HOSTNAME unless the container sets them, then its own variables, of which later ones see earlier ones; a
/// repeated name takes its last value in its first place. kInvalid: a field reference that cannot be resolved.
Result<Environment> environment_of(const api::Pod& pod, const api::Container& container, const PodAddresses& addresses);

/// command and args, expanded. kInvalid: both are empty, and the process runtime has no image to take a command from.
Result<std::vector<std::string>> command_line_of(const api::Container& container, const Environment& variables);

}  // namespace spillway::agent
