// A zone of ten nodes is lost, with pods deleted first as upstream does and with each of the brakes that consider their
// replacements: how long it takes until everything serves again, what budgets lose, and which pods are deleted without
// a place for their replacement.
#include "sim/cluster.h"
#include "sim/scenario/parser.h"
#include "sim/scenario/player.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

constexpr Duration kLostAt = minutes(1);
constexpr Duration kBackAt = minutes(13);
const std::string kLostZone = "zone-0";

Scenario failover() {
  const std::string file = "tests/scenarios/failover.yaml";
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  const auto scenario = parse_scenario(
      file, text.str(), [](const std::string& name) -> Result<std::string> { return invalid(name, "-"); });
  EXPECT_TRUE(scenario) << scenario.error().text();
  return *scenario;
}

std::string app_of(const api::Pod& pod) {
  const auto label = pod.metadata.labels.find("app");
  return label == pod.metadata.labels.end() ? std::string() : label->second;
}

/// Records the state of the cluster, change by change.
class Watching final : public RunObserver {
 public:
  struct Moment {
    Instant at;
    std::map<std::string, std::int64_t> serving;    // by app, wherever the zone may be lost
    std::map<std::string, std::int64_t> elsewhere;  // pods outside of the zone
    std::int64_t roomless = 0;                      // without a node
  };

  struct Deletion {
    Instant at;
    std::string app;
    std::string zone;
    std::int64_t ready = 0;  // the app's ready pods, as the API reports them
  };

  void on_begin(Cluster& cluster) override {
    cluster_ = &cluster;
    cluster.world().listen([this](const store::Change& change, Now now) {
      if (change.key.starts_with("/registry/pods/")) record_moment(now.mono);
    });
  }

  void on_end(Cluster& cluster) override { end_ = cluster.time().now().mono; }

  std::vector<Moment> moments;
  std::vector<Deletion> deletions;

  Instant begin(Duration lasted) const { return end_ - lasted; }

 private:
  std::string zone_of(const api::Pod& pod) const {
    const auto node = cluster_->world().nodes().find(pod.spec.node_name);
    if (node == cluster_->world().nodes().end()) return {};
    return node->second.metadata.labels.at("topology.kubernetes.io/zone");
  }

  static bool is_ready(const api::Pod& pod) {
    const api::PodCondition* ready = api::find_condition(pod.status.conditions, "Ready");
    return ready != nullptr && ready->status == "True";
  }

  void record_moment(Instant now) {
    Moment moment{.at = now, .serving = {}, .elsewhere = {}};
    std::map<std::string, std::int64_t> ready;
    std::vector<const api::Pod*> deleted;
    for (const auto& [key, pod] : cluster_->world().pods()) {
      if (pod.metadata.deletion_timestamp) {
        if (gone_.insert(pod.metadata.uid).second) deleted.push_back(&pod);
        continue;
      }
      if (pod.spec.node_name.empty()) ++moment.roomless;
      if (!is_ready(pod)) continue;
      ++ready[app_of(pod)];
      ++moment.serving[app_of(pod)];
      if (zone_of(pod) != kLostZone) ++moment.elsewhere[app_of(pod)];
    }
    for (const api::Pod* pod : deleted) deletions.push_back({now, app_of(*pod), zone_of(*pod), ready[app_of(*pod)]});
    moments.push_back(std::move(moment));
  }

  Cluster* cluster_ = nullptr;
  Instant end_{};
  std::set<std::string> gone_;
};

struct Measured {
  std::map<std::string, std::optional<Duration>> serving_again;  // by app, and "" for all: after the loss
  std::map<std::string, Duration> below_budget;
  std::int64_t deleted = 0;            // pods of the lost zone, while it was lost
  std::int64_t deleted_elsewhere = 0;  // preempted
  std::int64_t budgets_broken = 0;     // deletions of pods whose budget had fewer ready ones than it requires
  std::int64_t roomless = 0;           // pods without a node just before the zone recovered
  RunOutcome outcome;
};

Measured measure(Scenario scenario) {
  const auto& workloads = std::get<GeneratedCluster>(scenario.cluster).workloads;
  Watching watching;
  Measured result{.outcome = run_scenario(scenario, {.seed = 1, .observer = &watching, .should_continue = {}})};
  const Instant lost = watching.begin(scenario.duration) + kLostAt;
  const Instant back = lost + (kBackAt - kLostAt);
  std::map<std::string, std::int64_t> budgets;
  for (const auto& each : workloads) budgets[each.name] = each.budget_available.value_or(0);
  for (const auto& each : watching.deletions) {
    if (each.at < lost || each.at >= back) continue;
    ++(each.zone == kLostZone ? result.deleted : result.deleted_elsewhere);
    result.budgets_broken += each.ready < budgets[each.app] ? 1 : 0;
  }
  std::map<std::string, std::optional<Instant>> whole;  // since when
  for (std::size_t i = 0; i < watching.moments.size(); ++i) {
    const Watching::Moment& moment = watching.moments[i];
    if (moment.at < back) result.roomless = moment.roomless;
    const bool is_lost = moment.at >= lost && moment.at < back;
    bool all = true;
    for (const auto& each : workloads) {
      const auto& serving = is_lost ? moment.elsewhere : moment.serving;
      const auto found = serving.find(each.name);
      const std::int64_t count = found == serving.end() ? 0 : found->second;
      const bool is_whole = count >= each.replicas;
      all = all && is_whole;
      if (!is_whole) whole[each.name].reset();
      if (is_whole && !whole[each.name]) whole[each.name] = moment.at;
      const Instant until = i + 1 < watching.moments.size() ? watching.moments[i + 1].at : moment.at;
      if (is_lost && count < budgets[each.name]) result.below_budget[each.name] += std::min(until, back) - moment.at;
    }
    if (!all) whole[""].reset();
    if (all && !whole[""]) whole[""] = moment.at;
  }
  for (const auto& [app, since] : whole) {
    if (since) result.serving_again[app] = *since - lost;
  }
  return result;
}

std::string text(const std::optional<Duration>& duration) {
  return duration ? fmt::format("{} s", *duration / seconds(1)) : "never";
}

struct Setting {
  std::string name;
  bool budgets = false;
  bool room = false;
  bool first = false;
};

Measured measure(const Setting& setting, std::int64_t batch) {
  Scenario scenario = failover();
  scenario.expectations.clear();
  auto& evictions = scenario.config.controllers.taint_eviction;
  evictions.respect_budgets = setting.budgets;
  evictions.wait_for_replacement = setting.room;
  evictions.replace_before_deletion = setting.first;
  std::get<GeneratedCluster>(scenario.cluster).workloads.back().replicas = batch;
  Measured got = measure(std::move(scenario));
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", setting.name, text(got.serving_again["pay"]),
             text(got.serving_again["shop"]), text(got.serving_again["batch"]), text(got.serving_again[""]),
             got.budgets_broken, got.roomless, got.deleted, got.deleted_elsewhere);
  std::fflush(stdout);
  EXPECT_THAT(got.outcome.violations, ::testing::IsEmpty());
  return got;
}

/// Pods of the least important set: with them there is room for 20 of 50 pods, without them for all.
constexpr std::int64_t kTight = 60;
constexpr std::int64_t kRoomy = 0;

TEST(Failover, DeletedFirstManyHaveNoPlace) {
  const Measured plain = measure({.name = "none"}, kTight);
  EXPECT_EQ(plain.deleted, 50);
  EXPECT_GT(plain.roomless, 0);
  EXPECT_GT(plain.budgets_broken, 0);
}

void expect_nobody_without_a_place(const Setting& setting) {
  const Measured got = measure(setting, kTight);
  EXPECT_EQ(got.roomless, 0);
  EXPECT_GT(got.deleted, 0);
  EXPECT_LE(got.deleted, 20);
  EXPECT_EQ(got.deleted_elsewhere, 0);
  if (setting.budgets) EXPECT_EQ(got.budgets_broken, 0);
}

TEST(Failover, ReplacedFirstNoPodLacksAPlace) {
  expect_nobody_without_a_place({.name = "--replace-before-deletion", .first = true});
}

TEST(Failover, WithinBudgetsNoPodLacksAPlaceEither) {
  expect_nobody_without_a_place({.name = "--replace-before-deletion, budgets", .budgets = true, .first = true});
}

TEST(Failover, WithRoomAllAreReplaced) {
  for (const bool first : {false, true}) {
    const Measured got = measure({.name = first ? "--replace-before-deletion" : "none", .first = first}, kRoomy);
    EXPECT_EQ(got.deleted, 30);
    EXPECT_EQ(got.roomless, 0);
    EXPECT_LT(got.serving_again.at(""), minutes(10));
  }
}

TEST(Failover, HoldsWhatItExpects) {
  const RunOutcome outcome = run_scenario(failover(), {.seed = 1, .should_continue = {}});
  EXPECT_THAT(outcome.violations, ::testing::IsEmpty());
  for (const ExpectationResult& each : outcome.expectations) EXPECT_TRUE(each.held) << each.text << ": " << each.seen;
}

}  // namespace
}  // namespace spillway::sim
