#include "policy/addresses/node_ranges.h"

#include <gtest/gtest.h>

namespace spillway::addresses {
namespace {

std::string place_of_error(const NodeRangeFlags& flags) {
  const auto ranges = parse_node_ranges(flags);
  return ranges ? "" : ranges.error().at;
}

TEST(NodeRanges, BlocksHaveTheSizeOfTheirFamily) {
  const auto both = parse_node_ranges({.cluster_cidr = "10.244.0.0/16,fd00::/56"});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->clusters[0].blocks_max(), 256U);
  EXPECT_EQ(both->clusters[1].blocks_max(), 256U);
  EXPECT_EQ(parse_node_ranges({.cluster_cidr = "10.0.0.0/16", .node_cidr_mask_size = 26})->clusters[0].blocks_max(),
            1024U);
  EXPECT_EQ(parse_node_ranges({.cluster_cidr = "fd00::/48", .node_cidr_mask_size_ipv6 = 60})->clusters[0].blocks_max(),
            4096U);
}

TEST(NodeRanges, MistakesNameTheirFlag) {
  EXPECT_EQ(place_of_error({}), "--cluster-cidr");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0"}), "--cluster-cidr");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0/16,10.1.0.0/16"}), "--cluster-cidr");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0/16,fd00::/56,fd01::/56"}), "--cluster-cidr");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0/16,fd00::/56", .node_cidr_mask_size = 24}),
            "--node-cidr-mask-size");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0/16", .node_cidr_mask_size_ipv6 = 64}),
            "--node-cidr-mask-size-ipv6");
  EXPECT_EQ(place_of_error({.cluster_cidr = "fd00::/56", .node_cidr_mask_size_ipv4 = 24}),
            "--node-cidr-mask-size-ipv4");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0/25"}), "--node-cidr-mask-size");
  EXPECT_EQ(place_of_error({.cluster_cidr = "fd00::/32"}), "--node-cidr-mask-size");
  EXPECT_EQ(place_of_error({.cluster_cidr = "10.0.0.0/16", .service_cluster_ip_range = "x"}),
            "--service-cluster-ip-range");
}

}  // namespace
}  // namespace spillway::addresses
