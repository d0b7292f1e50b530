// The names of a pod: its host name and the text of its /etc/hosts.
// Thread: any (pure). Source: Kubernetes docs, "DNS for Services and Pods", "Adding entries to Pod /etc/hosts with
// HostAliases"; spec "Pod lifecycle", 6.8.
#pragma once

#include "agent/contract/volume_ports.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct PodNames {
  std::string host;
  std::string domain;  // empty: none
};

/// kInvalid, in upstream's words: spec.hostname is no DNS label.
Result<PodNames> names_of(const api::Pod& pod, const std::string& cluster_domain);

/// The host name set in the kernel. kInvalid: the pod wants its full name as host name, and that is too long.
Result<std::string> kernel_host_name(const api::Pod& pod, const PodNames& names);

/// nullopt: the pod has no address yet. Of a pod in the machine's network, the machine's file is a part.
std::optional<ManagedFile> hosts_file(const api::Pod& pod, const PodNames& names,
                                      const std::vector<std::string>& pod_ips);

}  // namespace spillway::agent
