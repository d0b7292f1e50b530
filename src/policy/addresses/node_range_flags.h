// The flags of kube-controller-manager about pod addresses of nodes. Thread: any (values).
// Source: Kubernetes docs, "kube-controller-manager".
#pragma once

#include <string>

namespace spillway::addresses {

/// The flags; a size of 0: not given.
struct NodeRangeFlags {
  std::string cluster_cidr;  // one range, or two of different families: "10.244.0.0/16,fd00:10:244::/56"
  int node_cidr_mask_size = 0;
  int node_cidr_mask_size_ipv4 = 0;
  int node_cidr_mask_size_ipv6 = 0;
  std::string service_cluster_ip_range;  // one or two ranges, as above; empty: no range overlaps
};

}  // namespace spillway::addresses
