// The resolver configuration of a pod: name servers, search domains, options. Thread: any (pure). Source: Kubernetes
// docs, "DNS for Services and Pods"; spec "Pod lifecycle", 6.9; vectors pod-lifecycle/hosts_resolv,
// network/resolv_conf.
#pragma once

#include "agent/contract/dns_facts.h"
#include "api/object/pod.h"
#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

struct DnsConfig {
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::string> options;

  friend bool operator==(const DnsConfig&, const DnsConfig&) = default;
};

/// Warnings for an event; those of the node besides, once for each pod.
struct DnsWarning {
  std::string reason;  // "DNSConfigForming", "MissingClusterDNS"
  std::string message;
  bool about_node = false;
};

struct PodDns {
  DnsConfig config;
  std::vector<DnsWarning> warnings;
};

/// True if the pod's name servers are not simply the machine's: it names its own, or gets the cluster's.
bool has_own_dns(const api::Pod& pod, const DnsFacts& facts);

/// The text of /etc/resolv.conf.
std::string resolv_conf(const DnsConfig& config);

/// The reason why the machine's file cannot be read, or why pods will miss some of it; the first that is found. In
/// upstream's words, for an event about the node. nullopt: there is none.
std::optional<std::string> resolver_file_problem(const DnsFacts& facts);

/// Errors are in upstream's words: the machine's file cannot be read, or parsed.
Result<PodDns> pod_dns(const api::Pod& pod, const DnsFacts& facts);

}  // namespace spillway::agent
