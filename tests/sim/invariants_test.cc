// Each invariant finds what it is there for.
#include "sim/invariants.h"

#include "api/object/taint.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::sim {

namespace {

api::Node tainted(const std::string& name) {
  api::Node node;
  node.metadata.name = name;
  node.spec.taints.push_back({std::string(api::kTaintNodeUnreachable), "", std::string(api::kNoExecute), {}});
  return node;
}

TEST(Invariants, FindATaintRateAboveTheLimit) {
  Invariants invariants({.node_eviction_rate = 0.1});
  const auto at = [](int second) { return Now{Instant(seconds(second)), WallTime(seconds(second))}; };
  const api::Node a = tainted("a");
  const api::Node b = tainted("b");
  const api::Node c = tainted("c");
  invariants.on_node(nullptr, &a, at(0));
  invariants.on_node(nullptr, &b, at(10));
  EXPECT_TRUE(invariants.violations().empty());
  invariants.on_node(nullptr, &c, at(11));
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, FindAPodThatMoves) {
  Invariants invariants({});
  api::Pod before;
  before.metadata.uid = "u";
  before.spec.node_name = "a";
  api::Pod after = before;
  after.spec.node_name = "b";
  invariants.on_pod(&before, &after, {});
  EXPECT_EQ(invariants.violations().size(), 1U);
}

TEST(Invariants, FindAPodOnTwoNodes) {
  Invariants invariants({});
  invariants.on_start("a", "u", {});
  invariants.on_start("b", "u", {});
  EXPECT_EQ(invariants.violations().size(), 1U);
}

}  // namespace

}  // namespace spillway::sim
