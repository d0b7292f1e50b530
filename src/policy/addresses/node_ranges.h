// Ranges for the nodes' blocks of pod addresses, parsed from the flags of kube-controller-manager. Thread: any
// (values). Source: Kubernetes docs, "kube-controller-manager", --cluster-cidr, --node-cidr-mask-size*,
// --service-cluster-ip-range.
#pragma once

#include "api/text/ip_address.h"
#include "base/error.h"
#include "policy/addresses/cidr_set.h"
#include "policy/addresses/node_range_flags.h"

#include <vector>

namespace spillway::addresses {

/// Empty `clusters`: no node gets a block.
struct NodeRanges {
  std::vector<CidrSet> clusters;  // at most one for each family, in the order of the flag
  std::vector<api::IpRange> services;
};

/// kInvalid, with the flag as its place: a range that cannot be read, two of one family, a size that does not fit.
Result<NodeRanges> parse_node_ranges(const NodeRangeFlags& flags);

}  // namespace spillway::addresses
