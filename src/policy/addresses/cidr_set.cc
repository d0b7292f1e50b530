#include "policy/addresses/cidr_set.h"

#include "policy/addresses/ip_blocks.h"

#include <algorithm>
#include <iterator>

namespace spillway::addresses {

namespace {

constexpr int kV6BlockBitsMax = 16;  // an IPv6 range has at most 65,536 blocks, as upstream

}  // namespace

CidrSet::CidrSet(const api::IpRange& cluster, int node_bits)
    : cluster_{first_of(cluster.first, cluster.prefix_bits), cluster.prefix_bits},
      node_bits_(node_bits),
      block_bits_(address_bits(cluster.first) - node_bits),
      blocks_max_(std::uint64_t{1} << (node_bits - cluster.prefix_bits)) {}

Result<CidrSet> CidrSet::create(const api::IpRange& cluster, int node_bits) {
  const int bits = node_bits - cluster.prefix_bits;
  if (!cluster.first.v4 && bits > kV6BlockBitsMax) {
    return make_error(ErrorCode::kInvalid, "New CIDR set failed; the node CIDR size is too big");
  }
  if (bits < 0 || node_bits > address_bits(cluster.first)) {
    return make_error(ErrorCode::kInvalid, "blocks of /{} cannot be taken from {}", node_bits, to_text(cluster));
  }
  return CidrSet(cluster, node_bits);
}

Result<CidrSet::Run> CidrSet::blocks_of(const api::IpRange& range) const {
  const api::IpAddress first = first_of(range.first, range.prefix_bits);
  const bool same_family = first.v4 == cluster_.first.v4;
  if (same_family && range.prefix_bits <= cluster_.prefix_bits && range.contains(cluster_.first)) {
    return Run{0, blocks_max_ - 1};
  }
  if (!same_family || !cluster_.contains(first)) {
    return make_error(ErrorCode::kInvalid, "cidr {} is out the range of cluster cidr {}", to_text(range),
                      to_text(cluster_));
  }
  return Run{block_number(cluster_.first, first, block_bits_),
             block_number(cluster_.first, last_of(first, range.prefix_bits), block_bits_)};
}

void CidrSet::mark(Run blocks) {
  auto [first, last] = blocks;
  auto at = runs_.upper_bound(first);
  if (at != runs_.begin() && std::prev(at)->second + 1 >= first) --at;
  while (at != runs_.end() && at->first <= last + 1) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    at = runs_.erase(at);
  }
  runs_.emplace(first, last);
}

Result<api::IpRange> CidrSet::allocate() {
  const auto first_free_from = [this](std::uint64_t number) {
    const auto behind = runs_.upper_bound(number);
    if (behind == runs_.begin()) return number;
    return std::max(number, std::prev(behind)->second + 1);  // adjacent runs are merged, so the next number is free
  };
  std::uint64_t number = first_free_from(next_ % blocks_max_);
  if (number >= blocks_max_) number = first_free_from(0);
  if (number >= blocks_max_) {
    return make_error(ErrorCode::kServiceUnavailable,
                      "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range");
  }
  mark({number, number});
  next_ = number + 1;
  return api::IpRange{nth_block(cluster_.first, number, block_bits_), node_bits_};
}

Outcome CidrSet::occupy(const api::IpRange& range) {
  const Result<Run> blocks = blocks_of(range);
  if (!blocks) return blocks.error();
  mark(*blocks);
  return {};
}

Outcome CidrSet::release(const api::IpRange& range) {
  const Result<Run> blocks = blocks_of(range);
  if (!blocks) return blocks.error();
  mark(*blocks);  // then exactly one run contains the blocks
  const auto at = std::prev(runs_.upper_bound(blocks->first));
  const Run run = *at;
  runs_.erase(at);
  if (run.first < blocks->first) runs_.emplace(run.first, blocks->first - 1);
  if (blocks->second < run.second) runs_.emplace(blocks->second + 1, run.second);
  return {};
}

}  // namespace spillway::addresses
