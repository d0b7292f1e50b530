// The blocks of a cluster's range of pod addresses, one for each node: which are free, and which is next. Blocks that
// were released are given out again only when the others have been.
// Thread: any (values). Bounds: memory grows with the runs of occupied blocks, not with the size of the range; each
// operation is logarithmic in them. Source: Kubernetes docs, "kube-controller-manager", --allocate-node-cidrs; vectors
// network/cidr_set.
#pragma once

#include "api/text/ip_address.h"
#include "base/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace spillway::addresses {

class CidrSet {
 public:
  /// `node_bits`: the prefix of a node's block. kInvalid: the blocks are larger than the range, longer than an address
  /// or, of IPv6, more than 65,536.
  static Result<CidrSet> create(const api::IpRange& cluster, int node_bits);

  std::uint64_t blocks_max() const { return blocks_max_; }

  const api::IpRange& cluster() const { return cluster_; }

  /// kServiceUnavailable: no block is left.
  Result<api::IpRange> allocate();

  /// Marks each block that overlaps the range; marked blocks stay marked. kInvalid: the range is outside.
  Outcome occupy(const api::IpRange& range);
  /// Frees each block that overlaps the range. kInvalid: the range is outside.
  Outcome release(const api::IpRange& range);

 private:
  CidrSet(const api::IpRange& cluster, int node_bits);

  using Run = std::pair<std::uint64_t, std::uint64_t>;  // numbers of the first and the last block
  Result<Run> blocks_of(const api::IpRange& range) const;
  void mark(Run blocks);

  api::IpRange cluster_;
  int node_bits_;
  int block_bits_;  // addresses of a block as a power of two
  std::uint64_t blocks_max_;
  std::uint64_t next_ = 0;                       // the start of the search for a free block
  std::map<std::uint64_t, std::uint64_t> runs_;  // occupied blocks, first to last; no two touch or overlap
};

}  // namespace spillway::addresses
