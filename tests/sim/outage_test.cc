// The API server away for five minutes, and clocks that jump by an hour: heartbeats come back at once, there is no
// storm of requests, and no healthy node is marked.
#include "sim/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace spillway::sim {
namespace {

constexpr std::string_view kLeases = "/registry/leases/kube-node-lease/";
constexpr std::int32_t kNodes = 30;

/// Records heartbeats and health of nodes from the store's changes.
class Witness {
 public:
  explicit Witness(Cluster& cluster) {
    cluster.world().listen([this](const store::Change& change, Now now) {
      if (change.key.starts_with(kLeases)) {
        const std::string node = change.key.substr(kLeases.size());
        Duration& longest = longest_[node];
        if (renewed_.contains(node)) longest = std::max<Duration>(longest, now.mono - renewed_[node]);
        renewed_[node] = now.mono;
        ++renewals_;
      }
    });
  }

  void forget() {
    longest_.clear();
    renewals_ = 0;
  }

  std::uint64_t renewals() const { return renewals_; }

  /// Nodes renewed since, and when the last of them was.
  std::size_t renewed_since(Instant since) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(renewed_, [&](const auto& each) { return each.second >= since; }));
  }

  Duration longest_gap() const {
    Duration longest{};
    for (const auto& [node, gap] : longest_) longest = std::max(longest, gap);
    return longest;
  }

 private:
  std::map<std::string, Instant> renewed_;
  std::map<std::string, Duration> longest_;
  std::uint64_t renewals_ = 0;
};

/// Nodes with a condition or taint of a failure.
std::set<std::string> ill_nodes(const World& world) {
  std::set<std::string> ill;
  for (const auto& [name, node] : world.nodes()) {
    for (const api::NodeCondition& condition : node.status.conditions) {
      if (condition.status != (condition.type == "Ready" ? "True" : "False")) ill.insert(name + " " + condition.type);
    }
    for (const api::Taint& taint : node.spec.taints) ill.insert(name + " " + taint.key);
  }
  return ill;
}

/// The names in front of each.
std::set<std::string> nodes_of(const std::set<std::string>& ill) {
  std::set<std::string> nodes;
  for (const std::string& each : ill) nodes.insert(each.substr(0, each.find(' ')));
  return nodes;
}

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

ClusterOptions calm_cluster() {
  ClusterOptions options;
  options.nodes = kNodes;
  options.zones = 3;
  options.observe_interval_max = seconds(10);
  return options;
}

/// The nodes that an outage of five minutes leaves marked; prints a line about the run.
std::set<std::string> ill_after_an_outage(const ClusterOptions& options, const char* brakes) {
  Cluster cluster(options);
  Witness witness(cluster);
  cluster.run_for(minutes(3));
  EXPECT_EQ(ill_nodes(cluster.world()), std::set<std::string>{});
  std::uint64_t before = cluster.network().messages();
  cluster.run_for(minutes(1));
  const std::uint64_t calm_per_second = (cluster.network().messages() - before) / 60;

  cluster.crash_server();
  before = cluster.network().messages();
  cluster.run_for(minutes(5));
  const std::uint64_t away_per_second = (cluster.network().messages() - before) / 300;

  const Instant back = cluster.time().now().mono;
  witness.forget();
  cluster.restart_server();
  std::uint64_t peak = 0;
  Duration all_renewed{};
  std::set<std::string> ill;
  for (int second = 1; second <= 120; ++second) {
    before = cluster.network().messages();
    cluster.run_for(seconds(1));
    peak = std::max(peak, cluster.network().messages() - before);
    if (all_renewed == Duration{} && witness.renewed_since(back) == kNodes) all_renewed = seconds(second);
    ill.merge(ill_nodes(cluster.world()));
  }
  std::printf(
      "%s: %d nodes: %llu messages/s before, %llu while away, at most %llu in one second after; every lease renewed "
      "within "
      "%.0f s of the return; %zu false conditions or taints\n",
      brakes, kNodes, static_cast<unsigned long long>(calm_per_second),
      static_cast<unsigned long long>(away_per_second), static_cast<unsigned long long>(peak), in_seconds(all_renewed),
      ill.size());
  EXPECT_EQ(witness.renewed_since(back), static_cast<std::size_t>(kNodes));
  EXPECT_GT(all_renewed, Duration{});
  EXPECT_LE(all_renewed, seconds(10)) << "no heartbeat is lost";
  EXPECT_LE(away_per_second, 40U * kNodes) << "nobody hammers a server that is away";
  EXPECT_LE(peak, 60U * kNodes) << "no storm";
  EXPECT_EQ(cluster.invariants().violations(), std::vector<std::string>{});
  return ill;
}

TEST(Outage, FiveMinutesWithoutAnApiServer) {
  // As upstream: a node that is first seen silent when the server is back is marked, until its heartbeat arrives.
  const std::size_t marked = nodes_of(ill_after_an_outage(calm_cluster(), "no brakes")).size();
  EXPECT_LT(marked, kNodes / 2U);
}

TEST(Outage, WithDoubtNoNodeIsMarked) {
  ClusterOptions options = calm_cluster();
  options.controllers.brakes.stall_share = 0.5;
  options.controllers.brakes.stall_max = minutes(15);
  options.controllers.brakes.cool_down = minutes(1);
  EXPECT_EQ(ill_after_an_outage(options, "stall brake"), std::set<std::string>{});
}

class ClockJump : public ::testing::TestWithParam<int> {};

TEST_P(ClockJump, ByAnHourIsNoSilence) {
  Cluster cluster(calm_cluster());
  Witness witness(cluster);
  cluster.run_for(minutes(3));
  std::uint64_t before = cluster.network().messages();
  cluster.run_for(minutes(1));
  const std::uint64_t calm = (cluster.network().messages() - before) / 60;
  witness.forget();
  cluster.time().jump_wall(hours(GetParam()));
  std::uint64_t peak = 0;
  std::set<std::string> ill;
  for (int second = 1; second <= 300; ++second) {
    before = cluster.network().messages();
    cluster.run_for(seconds(1));
    peak = std::max(peak, cluster.network().messages() - before);
    ill.merge(ill_nodes(cluster.world()));
  }
  std::printf(
      "clock %+d h: %llu messages/s before, at most %llu in one second after; %llu renewals in 300 s, longest gap %.1f "
      "s; "
      "%zu false conditions or taints\n",
      GetParam(), static_cast<unsigned long long>(calm), static_cast<unsigned long long>(peak),
      static_cast<unsigned long long>(witness.renewals()), in_seconds(witness.longest_gap()), ill.size());
  EXPECT_GE(witness.renewals(), 28U * kNodes) << "one every ten seconds and a little";
  EXPECT_LE(witness.longest_gap(), seconds(11));
  EXPECT_LE(peak, 20U * kNodes) << "no storm";
  EXPECT_EQ(ill, std::set<std::string>{});
  EXPECT_EQ(cluster.invariants().violations(), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Hours, ClockJump, ::testing::Values(1, -1));

}  // namespace
}  // namespace spillway::sim
