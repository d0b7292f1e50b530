// Where Spillway decides differently from upstream (the switches of the profile), one small cluster at a time.
#include "policy/lifecycle/node_monitor.h"

#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/lines/kubernetes_line.h"
#include "policy/lifecycle/taint_eviction.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace spillway::lifecycle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Monitor : public ::testing::Test {
 protected:
  void use(const Profile& profile) { monitor = std::make_unique<NodeMonitor>(MonitorConfig{}, profile); }

  api::Node& add(const std::string& name, std::string_view ready = "True", std::string_view zone = "a") {
    api::Node& node = nodes[name];
    node.metadata.name = name;
    node.metadata.uid = name + "-1";
    node.metadata.labels = {{"topology.kubernetes.io/zone", std::string(zone)}};
    node.metadata.creation_timestamp = now.wall;
    node.status.conditions = {{.type = "Ready",
                               .status = std::string(ready),
                               .last_heartbeat_time = now.wall,
                               .last_transition_time = now.wall}};
    return node;
  }

  void heartbeat(const std::string& name) { nodes.at(name).status.conditions[0].last_heartbeat_time = now.wall; }

  /// One pass in Spillway's order; writes and taints succeed at once.
  NodeMonitor::Verdict pass() {
    for (const auto& [name, node] : nodes) {
      if (const auto seen = reported.find(name); seen == reported.end() || seen->second != node) monitor->touch(name);
    }
    for (const auto& [name, node] : reported) {
      if (!nodes.contains(name)) monitor->touch(name);
    }
    reported = nodes;
    const auto find = [this](std::string_view name) {
      const auto node = nodes.find(std::string(name));
      return node == nodes.end() ? nullptr : &node->second;
    };
    opening = monitor->begin_pass(find, now);
    std::map<std::string, Assessment> assessed;
    for (const api::Node* node : opening.due) {
      const Assessment assessment = monitor->assess(*node, nullptr, now);
      monitor->count(*node, assessment);
      assessed.emplace(node->metadata.name, assessment);
    }
    const NodeMonitor::Verdict verdict = monitor->finish_pass(now);
    if (verdict.sweep) {
      for (const auto& [name, assessment] : assessed) untaint(name);
    }
    for (const auto& [name, assessment] : assessed) {
      api::Node& node = nodes.at(name);
      if (assessment.write) {
        node.status.conditions = *assessment.write;
        monitor->confirm_written(node, assessment, now);
      }
      marked[name] = monitor->decide_marking(node, assessment).mark;
      const TaintAction action = monitor->decide_taint(node, assessment, now);
      if (action == TaintAction::kRemoveBoth) untaint(name);
      if (action == TaintAction::kBecomeNotReady || action == TaintAction::kBecomeUnreachable) taint(name, action);
    }
    monitor->process_queues(now, [this](const std::string&, const RateLimitedQueue::Entry& entry) {
      const auto node = nodes.find(entry.name);
      if (node != nodes.end() && readiness_of(node->second) != Readiness::kTrue) {
        taint(entry.name, taint_action_for(readiness_of(node->second).value()));
      }
      return NodeMonitor::Answer{};
    });
    return verdict;
  }

  void taint(const std::string& name, TaintAction action) {
    untaint(name);
    const bool not_ready = action == TaintAction::kBecomeNotReady;
    nodes.at(name).spec.taints.push_back(
        {std::string(not_ready ? api::kTaintNodeNotReady : api::kTaintNodeUnreachable), "", "NoExecute", now.wall});
  }

  void untaint(const std::string& name) {
    auto& taints = nodes.at(name).spec.taints;
    erase_taint(taints, {std::string(api::kTaintNodeNotReady), "", "NoExecute", {}});
    erase_taint(taints, {std::string(api::kTaintNodeUnreachable), "", "NoExecute", {}});
    monitor->dequeue(nodes.at(name));
  }

  std::vector<std::string> tainted() const {
    std::vector<std::string> names;
    for (const auto& [name, node] : nodes) {
      if (!node.spec.taints.empty()) names.push_back(name);
    }
    return names;
  }

  void advance(Duration by) {
    now.mono += by;
    now.wall += std::chrono::duration_cast<microseconds>(by);
  }

  /// Passes every five seconds; the named nodes post before each.
  NodeMonitor::Verdict run(Duration duration, const std::vector<std::string>& alive) {
    NodeMonitor::Verdict last;
    for (Duration done{}; done < duration; done += seconds(5)) {
      advance(seconds(5));
      for (const std::string& name : alive) heartbeat(name);
      last = pass();
    }
    return last;
  }

  Now now{Instant(hours(10)), WallTime(seconds(1'700'000'000))};
  std::map<std::string, api::Node> nodes;
  std::map<std::string, api::Node> reported;
  std::map<std::string, bool> marked;
  NodeMonitor::Opening opening;
  std::unique_ptr<NodeMonitor> monitor = std::make_unique<NodeMonitor>(MonitorConfig{}, Profile{});
};

TEST_F(Monitor, TaintsInThePassThatWritesUnknown) {  // T5
  for (const char* name : {"n0", "n1", "n2"}) add(name);
  pass();
  run(seconds(50), {"n1", "n2"});
  EXPECT_THAT(tainted(), IsEmpty());
  run(seconds(5), {"n1", "n2"});
  EXPECT_THAT(tainted(), ElementsAre("n0"));
}

TEST_F(Monitor, ARestartKeepsTheTaintsOfFailingNodes) {  // T3
  add("n0", "Unknown").spec.taints = {{std::string(api::kTaintNodeUnreachable), "", "NoExecute", {}}};
  add("n1");
  pass();
  EXPECT_THAT(tainted(), ElementsAre("n0"));
  EXPECT_TRUE(marked.at("n0"));  // T6: the node's pods are marked again
  EXPECT_FALSE(marked.at("n1"));
  EXPECT_TRUE(monitor->zones().begin()->second.queue.empty());
}

TEST_F(Monitor, ANodeOfTheSameNameStartsAfresh) {  // T2
  for (const char* name : {"n0", "n1", "n2"}) add(name);
  pass();
  run(seconds(45), {"n1", "n2"});
  add("n0").metadata.uid = "n0-2";
  nodes.at("n0").status.conditions.clear();
  run(seconds(30), {"n1", "n2"});
  EXPECT_EQ(opening.added.size(), 0U);
  EXPECT_EQ(readiness_of(nodes.at("n0")), std::nullopt);  // the node is within its startup grace period
  run(seconds(35), {"n1", "n2"});
  EXPECT_EQ(readiness_of(nodes.at("n0")), Readiness::kUnknown);
}

TEST_F(Monitor, MasterDisruptionSweepsTaintsUntilItEnds) {  // T10
  for (const char* name : {"n0", "n1", "n2"}) add(name);
  pass();
  run(seconds(60), {"n1", "n2"});
  ASSERT_THAT(tainted(), ElementsAre("n0"));
  const auto verdict = run(seconds(60), {});
  EXPECT_TRUE(verdict.master_disruption);
  EXPECT_THAT(tainted(), IsEmpty());
  taint("n1", TaintAction::kBecomeUnreachable);  // a controller was late
  run(seconds(5), {});
  EXPECT_THAT(tainted(), IsEmpty());
}

TEST_F(Monitor, TheEndOfMasterDisruptionForgetsWhoWaited) {  // T11
  for (const char* name : {"n0", "n1", "n2"}) add(name);
  pass();
  run(seconds(70), {});
  heartbeat("n2");
  nodes.at("n2").status.conditions[0].status = "True";
  EXPECT_TRUE(run(seconds(5), {"n2"}).left_master_disruption);
  EXPECT_THAT(tainted(), IsEmpty());
}

TEST_F(Monitor, AStoppedZoneWithRateOneStartsAgain) {  // T12
  MonitorConfig config;
  config.zones.node_eviction_rate = 1.0F;
  monitor = std::make_unique<NodeMonitor>(config, Profile{});
  for (const char* name : {"n0", "n1", "n2"}) add(name, "Unknown");
  EXPECT_TRUE(pass().entered_master_disruption);
  EXPECT_EQ(monitor->zones().begin()->second.queue.limiter().effective_rate(), 0.0F);
  nodes.at("n0").status.conditions[0].status = "True";
  run(seconds(5), {"n0"});
  EXPECT_EQ(monitor->zones().begin()->second.queue.limiter().effective_rate(), 1.0F);
}

TEST_F(Monitor, RateZeroTaintsNoNode) {  // T13
  MonitorConfig config;
  config.zones.node_eviction_rate = 0.0F;
  monitor = std::make_unique<NodeMonitor>(config, Profile{});
  for (const char* name : {"n0", "n1", "n2"}) add(name);
  pass();
  run(minutes(5), {"n1", "n2"});
  EXPECT_EQ(readiness_of(nodes.at("n0")), Readiness::kUnknown);
  EXPECT_THAT(tainted(), IsEmpty());
}

TEST_F(Monitor, AZoneOfExcludedNodesKeepsItsRate) {  // T8
  add("n9", "True", "b");
  for (const char* name : {"n0", "n1", "n2"}) {
    add(name).metadata.labels["node.kubernetes.io/exclude-disruption"] = "";
  }
  pass();
  run(seconds(55), {"n9"});
  EXPECT_THAT(tainted(), SizeIs(1));
  run(seconds(5), {"n9"});
  EXPECT_THAT(tainted(), SizeIs(1));  // once, and not in every pass
  run(seconds(5), {"n9"});
  EXPECT_THAT(tainted(), SizeIs(2));
}

TEST_F(Monitor, VanishedZonesLeaveNothingBehind) {  // T9
  add("n0", "True", "a");
  add("n1", "True", "b");
  pass();
  EXPECT_THAT(monitor->zones(), SizeIs(2));
  nodes.erase("n1");
  pass();
  EXPECT_THAT(monitor->zones(), SizeIs(1));
  EXPECT_THAT(opening.deleted, ElementsAre("n1"));
  EXPECT_FALSE(monitor->find_record("n1"));
}

TEST_F(Monitor, ChecksOnlyWhatChangedOrDoesNotRest) {
  for (const char* name : {"n0", "n1", "n2", "n3"}) add(name);
  pass();
  advance(seconds(5));
  pass();
  EXPECT_THAT(opening.due, IsEmpty());
  advance(seconds(5));
  heartbeat("n2");
  pass();
  EXPECT_THAT(opening.due, ElementsAre(&nodes.at("n2")));
  EXPECT_EQ(monitor->zones().begin()->second.counts, (ZoneCounts{.ready = 4}));
  run(seconds(60), {"n1", "n2", "n3"});
  EXPECT_THAT(opening.due, ::testing::Contains(&nodes.at("n0"))) << "not Ready: in every pass";
  EXPECT_EQ(monitor->zones().begin()->second.counts, (ZoneCounts{.ready = 3, .unready = 1}));
}

TEST_F(Monitor, KnowsWhoFallsSilentNext) {
  for (const char* name : {"n0", "n1", "n2"}) add(name);
  pass();
  const Instant start = now.mono;
  EXPECT_EQ(monitor->first_deadline(now.mono), start + seconds(50));
  run(seconds(5), {"n0"});
  EXPECT_EQ(monitor->first_deadline(now.mono), start + seconds(50));
  run(seconds(5), {"n1", "n2"});
  EXPECT_EQ(monitor->first_deadline(now.mono), start + seconds(55));
  run(seconds(50), {"n1", "n2"});
  EXPECT_EQ(monitor->first_deadline(now.mono), now.mono + seconds(50)) << "n0 is silent already";
  advance(seconds(30));
  const NodeRecords::Heartbeats heartbeats = monitor->heartbeats(now.mono, seconds(25));
  EXPECT_EQ(heartbeats.nodes, 2);
  EXPECT_EQ(heartbeats.late, 2);
}

TEST_F(Monitor, TheReasonCarriesTheNumbers) {
  add("n0");
  pass();
  advance(seconds(51));
  const Assessment assessment = monitor->assess(nodes.at("n0"), nullptr, now);
  EXPECT_EQ(policy::render(assessment.reason(HealthConfig{})),
            "heartbeat-stale silence_ms=51000 grace_period_ms=50000");
}

/// As Kubernetes since 1.33; before, an armed timer was not changed.
TEST(TaintEvictions, TimersFollowTheTolerations) {  // T14
  EXPECT_FALSE(upstream_profile(Line::kV1_29, EvictionMode::kTaint).remedies.timers_follow_tolerations);
  EXPECT_TRUE(upstream_profile(Line::kV1_34, EvictionMode::kTaint).remedies.timers_follow_tolerations);
  TaintEvictions evictions{Profile{}};
  api::Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = "p";
  pod.spec.node_name = "n1";
  pod.spec.tolerations = {{"k", "Exists", "", "NoExecute", 100}};
  const Instant start(hours(1));
  const auto at = [&](int after_s) { return Now{start + seconds(after_s), {}}; };
  const api::Pod* pods[] = {&pod};
  EXPECT_THAT(evictions.on_node("n1", {{"k", "", "NoExecute", {}}}, pods, at(0)), IsEmpty());
  EXPECT_EQ(evictions.next_due(), start + seconds(100));
  pod.spec.tolerations[0].toleration_seconds = 300;
  evictions.on_pod(pod, at(50));
  EXPECT_EQ(evictions.next_due(), start + seconds(300));
  pod.spec.tolerations[0].toleration_seconds = 60;
  EXPECT_THAT(evictions.on_pod(pod, at(70)), SizeIs(1));  // overdue: now
  EXPECT_EQ(evictions.next_due(), std::nullopt);
}

TEST(TaintEvictions, AFailedDeletionIsRetriedLaterEachTime) {  // T15
  TaintEvictions evictions{Profile{}};
  api::Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = "p";
  pod.spec.node_name = "n1";
  const api::Pod* pods[] = {&pod};
  Instant t(hours(1));
  EXPECT_THAT(evictions.on_node("n1", {{"k", "", "NoExecute", {}}}, pods, Now{t, {}}), SizeIs(1));
  for (const int wait_s : {1, 2, 4, 8}) {
    evictions.on_evicted(pod.key(), false, Now{t, {}});
    ASSERT_EQ(evictions.next_due(), t + seconds(wait_s));
    t += seconds(wait_s);
    EXPECT_THAT(evictions.take_due(Now{t, {}}), SizeIs(1));
  }
  evictions.on_evicted(pod.key(), true, Now{t, {}});
  EXPECT_EQ(evictions.next_due(), std::nullopt);
  EXPECT_THAT(evictions.on_pod(pod, Now{t, {}}), SizeIs(1)) << "untolerated: deleted again";
}

}  // namespace
}  // namespace spillway::lifecycle
