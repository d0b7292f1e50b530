#include "policy/addresses/node_ranges.h"

#include "policy/addresses/ip_blocks.h"

#include <cstddef>
#include <string_view>

namespace spillway::addresses {

namespace {

constexpr int kDefaultSizeV4 = 24;
constexpr int kDefaultSizeV6 = 64;
constexpr std::string_view kClusterFlag = "--cluster-cidr";
constexpr std::string_view kServiceFlag = "--service-cluster-ip-range";
constexpr std::string_view kSizeFlag = "--node-cidr-mask-size";

/// Parses one or two ranges; the second must be of the other family.
Result<std::vector<api::IpRange>> parse_ranges(std::string_view flag, std::string_view text) {
  std::vector<api::IpRange> ranges;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view each = text.substr(0, comma);
    const auto range = api::parse_ip_range(each);
    if (!range) return invalid(flag, "\"{}\" is not a range of addresses; expected one such as 10.244.0.0/16", each);
    ranges.push_back({first_of(range->first, range->prefix_bits), range->prefix_bits});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (ranges.size() > 2 || (ranges.size() == 2 && ranges[0].first.v4 == ranges[1].first.v4)) {
    return invalid(flag, "expected one range, or one of IPv4 and one of IPv6");
  }
  return ranges;
}

/// Sizes that belong to another number or family of ranges.
Outcome check_sizes(const NodeRangeFlags& flags, const std::vector<api::IpRange>& clusters) {
  if (clusters.size() == 2 && flags.node_cidr_mask_size != 0) {
    return invalid(kSizeFlag,
                   "is for one range; with two set --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6");
  }
  const bool has_v4 = clusters[0].first.v4 || clusters.size() == 2;
  const bool has_v6 = !clusters[0].first.v4 || clusters.size() == 2;
  if (!has_v4 && flags.node_cidr_mask_size_ipv4 != 0) {
    return invalid("--node-cidr-mask-size-ipv4", "the range of --cluster-cidr is IPv6; set --node-cidr-mask-size-ipv6");
  }
  if (!has_v6 && flags.node_cidr_mask_size_ipv6 != 0) {
    return invalid("--node-cidr-mask-size-ipv6", "the range of --cluster-cidr is IPv4; set --node-cidr-mask-size-ipv4");
  }
  const int own = clusters[0].first.v4 ? flags.node_cidr_mask_size_ipv4 : flags.node_cidr_mask_size_ipv6;
  if (flags.node_cidr_mask_size != 0 && own != 0 && own != flags.node_cidr_mask_size) {
    return invalid(kSizeFlag, "contradicts the size for the family of --cluster-cidr; give one of them");
  }
  return {};
}

int size_of(const NodeRangeFlags& flags, bool v4) {
  const int own = v4 ? flags.node_cidr_mask_size_ipv4 : flags.node_cidr_mask_size_ipv6;
  if (own != 0) return own;
  if (flags.node_cidr_mask_size != 0) return flags.node_cidr_mask_size;
  return v4 ? kDefaultSizeV4 : kDefaultSizeV6;
}

}  // namespace

Result<NodeRanges> parse_node_ranges(const NodeRangeFlags& flags) {
  NodeRanges out;
  SPILLWAY_TRY(clusters, parse_ranges(kClusterFlag, flags.cluster_cidr));
  SPILLWAY_TRY_VOID(check_sizes(flags, clusters));
  for (const api::IpRange& cluster : clusters) {
    Result<CidrSet> set = CidrSet::create(cluster, size_of(flags, cluster.first.v4));
    if (!set) return Error{set.error().code, set.error().message, std::string(kSizeFlag)};
    out.clusters.push_back(*std::move(set));
  }
  if (flags.service_cluster_ip_range.empty()) return out;
  SPILLWAY_TRY(services, parse_ranges(kServiceFlag, flags.service_cluster_ip_range));
  out.services = std::move(services);
  return out;
}

}  // namespace spillway::addresses
