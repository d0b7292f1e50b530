// Blocks of pod addresses for nodes, with the real API server.
#include "controllers/controller_set.h"
#include "controllers/test_cluster.h"
#include "policy/addresses/node_ranges.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace spillway::controllers {
namespace {

using api::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kNodes = "/api/v1/nodes";

class NodeAddresses : public ::testing::Test {
 protected:
  ~NodeAddresses() override {
    if (set) cluster.stop(*set);
  }

  void start(const std::string& clusters, int size_v4 = 0, const std::string& services = {}) {
    ControllerSet::Options options;
    options.node_ranges = *addresses::parse_node_ranges(
        {.cluster_cidr = clusters, .node_cidr_mask_size_ipv4 = size_v4, .service_cluster_ip_range = services});
    if (set) cluster.stop(*set);
    set.emplace(std::move(options), Rng(3), telemetry::Log(), metrics);
    cluster.run(*set);
    cluster.advance(seconds(2));
  }

  std::string ranges_of(const std::string& node) {
    const Json* ranges = nullptr;
    const Json document = cluster.get(kNodes + "/" + node);
    ranges = document.at({"spec", "podCIDRs"});
    return ranges == nullptr ? "" : api::to_text(*ranges);
  }

  std::set<std::string> events_about(const std::string& node) {
    std::set<std::string> found;
    for (const Json& event : cluster.list("/api/v1/events")) {
      if (event.string_at({"involvedObject", "name"}) == node) {
        found.insert(fmt::format("{} {}", event.string_at({"reason"}), event.string_at({"message"})));
      }
    }
    return found;
  }

  void add_node_with(const std::string& name, const std::string& range) {
    cluster.add_node(name);
    cluster.merge(kNodes + "/" + name,
                  Json::object({{"spec", Json::object({{"podCIDR", range}, {"podCIDRs", Json::array({range})}})}}));
  }

  TestCluster cluster;
  telemetry::Registry metrics;
  std::optional<ControllerSet> set;
};

TEST_F(NodeAddresses, AreGivenOnceFromEachRange) {
  cluster.add_node("n0");
  cluster.add_node("n1");
  start("10.244.0.0/16,fd00:10:244::/56");
  EXPECT_EQ(ranges_of("n0"), R"(["10.244.0.0/24","fd00:10:244::/64"])");
  EXPECT_EQ(ranges_of("n1"), R"(["10.244.1.0/24","fd00:10:244:1::/64"])");
  EXPECT_EQ(cluster.get(kNodes + "/n1").string_at({"spec", "podCIDR"}), "10.244.1.0/24");
  cluster.add_node("n2");
  cluster.advance(seconds(2));
  EXPECT_EQ(ranges_of("n2"), R"(["10.244.2.0/24","fd00:10:244:2::/64"])");
}

TEST_F(NodeAddresses, ThatExistAtTheStartAreNotGivenAgain) {
  add_node_with("z", "10.244.0.0/24");
  cluster.add_node("a");
  start("10.244.0.0/16", 0, "10.244.1.0/24");
  EXPECT_EQ(ranges_of("a"), R"(["10.244.2.0/24"])") << "the first is taken, the second is of Services";
  start("10.244.0.0/16");
  cluster.add_node("b");
  cluster.advance(seconds(2));
  EXPECT_EQ(ranges_of("a"), R"(["10.244.2.0/24"])") << "another process changes nothing";
  EXPECT_EQ(ranges_of("b"), R"(["10.244.1.0/24"])");
}

TEST_F(NodeAddresses, OfADeletedNodeServeAnotherThatWaits) {
  start("10.244.0.0/23", 24);
  for (const char* name : {"n0", "n1", "n2"}) {
    cluster.add_node(name);
    cluster.advance(seconds(2));
  }
  EXPECT_EQ(ranges_of("n2"), "");
  EXPECT_THAT(events_about("n2"), ::testing::Contains("CIDRNotAvailable Node n2 status is now: CIDRNotAvailable"));
  cluster.remove(kNodes + "/n0");
  cluster.advance(seconds(2));
  EXPECT_EQ(ranges_of("n2"), R"(["10.244.0.0/24"])");
}

/// A node that was deleted and made again while its block was on the way.
TEST_F(NodeAddresses, AreForOneUidAlone) {
  start("10.244.0.0/16");
  cluster.before(api::Method::kPatch, kNodes + "/n0", [this] {
    cluster.remove(kNodes + "/n0");
    cluster.add_node("n0");
  });
  cluster.add_node("n0");
  cluster.advance(seconds(10));
  const std::string ranges = ranges_of("n0");
  EXPECT_THAT(ranges, HasSubstr("10.244."));
  cluster.add_node("n1");
  cluster.advance(seconds(10));
  EXPECT_NE(ranges_of("n1"), ranges);
}

TEST_F(NodeAddresses, AreWrittenAgainWithTheSameBlockAfterAnError) {
  start("10.244.0.0/16");
  cluster.fail(api::Method::kPatch, kNodes + "/n0$", 500, 8);
  cluster.add_node("n0");
  cluster.advance(seconds(30));
  EXPECT_EQ(ranges_of("n0"), R"(["10.244.0.0/24"])");
  EXPECT_THAT(events_about("n0"),
              ::testing::Contains("CIDRAssignmentFailed Node n0 status is now: CIDRAssignmentFailed"));
  cluster.fail(api::Method::kPatch, kNodes + "/n1", TestCluster::kLostAnswer, 1);
  cluster.add_node("n1");
  cluster.advance(minutes(1));
  cluster.add_node("n2");
  cluster.advance(seconds(10));
  EXPECT_EQ(ranges_of("n1"), R"(["10.244.1.0/24"])");
  EXPECT_EQ(ranges_of("n2"), R"(["10.244.2.0/24"])") << "no block is lost with an answer";
}

TEST_F(NodeAddresses, ThatAnotherWroteFirstStay) {
  start("10.244.0.0/16");
  cluster.before(api::Method::kPatch, kNodes + "/n0", [this] {
    cluster.merge(kNodes + "/n0",
                  *api::parse_json(R"({"spec":{"podCIDR":"10.244.9.0/24","podCIDRs":["10.244.9.0/24"]}})"));
  });
  cluster.add_node("n0");
  cluster.advance(seconds(10));
  EXPECT_EQ(ranges_of("n0"), R"(["10.244.9.0/24"])");
  for (int i = 1; i <= 9; ++i) {
    cluster.add_node(fmt::format("n{}", i));
    cluster.advance(seconds(2));
  }
  EXPECT_EQ(ranges_of("n8"), R"(["10.244.8.0/24"])");
  EXPECT_EQ(ranges_of("n9"), R"(["10.244.10.0/24"])") << "the ninth block is taken";
}

TEST_F(NodeAddresses, AreNotGivenWithoutARange) {
  cluster.add_node("n0");
  set.emplace(ControllerSet::Options{}, Rng(3), telemetry::Log(), metrics);
  cluster.run(*set);
  cluster.advance(seconds(10));
  EXPECT_THAT(ranges_of("n0"), IsEmpty());
}

}  // namespace
}  // namespace spillway::controllers
