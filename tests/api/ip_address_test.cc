#include "api/text/ip_address.h"

#include <gtest/gtest.h>

namespace spillway::api {
namespace {

TEST(IpAddress, WhatIsAnAddress) {
  for (const std::string_view text : {"10.1.2.3", "010.1.2.3", "255.255.255.255", "::1", "2001:db8::ffff"}) {
    EXPECT_TRUE(parse_ip(text)) << text;
  }
  for (const std::string_view text :
       {"", "10.1.2", "10.1.2.3.4", "256.1.1.1", "10.1.2.-3", "10.1.2.-0", "10.1.2.3 ", "a", ":::", "[::1]"}) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
}

TEST(IpAddress, FamiliesAndSpecialUses) {
  EXPECT_TRUE(parse_ip("10.0.0.1")->v4);
  EXPECT_TRUE(parse_ip("::ffff:10.0.0.1")->v4);
  EXPECT_EQ(*parse_ip("::ffff:10.0.0.1"), *parse_ip("10.0.0.1"));
  EXPECT_FALSE(parse_ip("fd00::1")->v4);
  EXPECT_TRUE(parse_ip("0.0.0.0")->is_unspecified());
  EXPECT_TRUE(parse_ip("::")->is_unspecified());
  EXPECT_TRUE(parse_ip("127.9.9.9")->is_loopback());
  EXPECT_TRUE(parse_ip("::1")->is_loopback());
  EXPECT_TRUE(parse_ip("169.254.1.1")->is_link_local());
  EXPECT_TRUE(parse_ip("fe80::1")->is_link_local());
  EXPECT_TRUE(parse_ip("224.0.0.7")->is_link_local_multicast());
  EXPECT_FALSE(parse_ip("224.0.1.7")->is_link_local_multicast());
}

TEST(IpRange, Contains) {
  const auto range = parse_ip_range("10.96.0.0/16");
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->contains(*parse_ip("10.96.255.254")));
  EXPECT_FALSE(range->contains(*parse_ip("10.97.0.1")));
  EXPECT_FALSE(range->contains(*parse_ip("fd00::1")));
  EXPECT_TRUE(parse_ip_range("0.0.0.0/0")->contains(*parse_ip("1.2.3.4")));
  EXPECT_TRUE(parse_ip_range("2001:db8::/33")->contains(*parse_ip("2001:db8:7fff::1")));
  EXPECT_FALSE(parse_ip_range("2001:db8::/33")->contains(*parse_ip("2001:db8:8000::1")));
  for (const std::string_view text :
       {"10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/-0", "10.0.0.0/", "/8", "x/8"}) {
    EXPECT_FALSE(parse_ip_range(text)) << text;
  }
}

}  // namespace
}  // namespace spillway::api
