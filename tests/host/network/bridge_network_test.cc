// The text and the addresses of the network that `spillway up` makes for a node.
#include "host/network/bridge_network.h"

#include <gtest/gtest.h>

namespace spillway::host {
namespace {

TEST(BridgeNetwork, TheGatewayIsTheFirstAddressOfTheRange) {
  EXPECT_EQ(gateway_of("10.244.3.0/24"), "10.244.3.1");
  EXPECT_EQ(gateway_of("10.244.3.128/25"), "10.244.3.129");
  EXPECT_EQ(gateway_of("10.244.3.77/24"), "10.244.3.1") << "bits behind the prefix do not count";
  EXPECT_EQ(gateway_of("fd00:1::/64"), "fd00:1::1");
  EXPECT_FALSE(gateway_of("10.244.3.0"));
  EXPECT_FALSE(gateway_of(""));
}

}  // namespace
}  // namespace spillway::host
