// A pass that looks only at what can have changed decides what a pass over all nodes decides: random clusters, played
// through both at once, in every profile.
#include "policy/lifecycle/scanning_monitor.h"

#include "base/rng.h"
#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/lines/kubernetes_line.h"
#include "policy/lifecycle/node_monitor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::lifecycle {
namespace {

constexpr std::size_t kNames = 14;
constexpr std::size_t kZones = 3;

/// The decision of a pass for one node, as text.
std::string decision_text(const Assessment& assessment) {
  const auto text = [](const std::optional<Readiness>& readiness) {
    return readiness ? to_string(*readiness) : "none";
  };
  return fmt::format("observed {} current {} silent {} write {}", text(assessment.observed), text(assessment.current),
                     assessment.silent, assessment.write.has_value());
}

class Pair {
 public:
  Pair(const Profile& profile, std::uint64_t seed)
      : profile_(profile),
        rng_(seed),
        late_(rng_.chance_ppm(500'000)),
        all_(config(), profile),
        some_(config(), profile),
        evictions_(some_, config().pod_eviction_timeout, profile.facts) {
    for (std::size_t i = 0; i < kNames - 3; ++i) add(i);
  }

  void step() {
    advance(milliseconds(static_cast<std::int64_t>(rng_.below(9'000))));
    const std::size_t changes = rng_.below(6);
    for (std::size_t i = 0; i < changes; ++i) change(rng_.below(kNames));
    if (rng_.chance_ppm(600'000)) post_all();
    pass();
    advance(milliseconds(100));
    process_queues();
    compare();
  }

  std::uint64_t nodes_seen() const { return nodes_seen_; }

  std::uint64_t nodes_due() const { return nodes_due_; }

 private:
  static MonitorConfig config() {
    MonitorConfig config;
    config.zones.node_eviction_rate = 0.2F;
    config.pod_eviction_timeout = seconds(90);
    return config;
  }

  bool evicts_by_timeout() const { return profile_.mode == EvictionMode::kLegacy; }

  bool often() { return rng_.chance_ppm(850'000); }

  void advance(Duration by) {
    now_.mono += by;
    now_.wall += std::chrono::duration_cast<microseconds>(by);
  }

  static std::string name_of(std::size_t i) { return fmt::format("n{:02}", i); }

  void add(std::size_t i) {
    const std::string name = name_of(i);
    api::Node& node = nodes_[name];
    node = {};
    node.metadata.name = name;
    node.metadata.uid = fmt::format("{}-{}", name, ++uids_);
    node.metadata.labels = {{"topology.kubernetes.io/zone", fmt::format("z{}", i % kZones)}};
    node.metadata.creation_timestamp = std::chrono::floor<seconds>(now_.wall);
    if (often()) post(name, "True");
    some_.touch(name);
  }

  void post(const std::string& name, const std::string& ready) {
    api::Node& node = nodes_.at(name);
    const auto wall = std::chrono::floor<seconds>(now_.wall);
    std::vector<api::NodeCondition> conditions;
    for (const char* type : {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}) {
      const std::string status = type == std::string_view("Ready") ? ready : "False";
      const api::NodeCondition* before = api::find_condition(node.status.conditions, type);
      const bool turned = before == nullptr || before->status != status;
      conditions.push_back({.type = type,
                            .status = status,
                            .last_heartbeat_time = wall,
                            .last_transition_time = turned ? wall : before->last_transition_time});
    }
    node.status.conditions = std::move(conditions);
    some_.touch(name);
  }

  void renew(const std::string& name) {
    api::Lease& lease = leases_[name];
    lease.renew_time = now_.wall;
    if (profile_.remedies.detect_at_deadline && profile_.facts.leases && some_.knows(name) && all_.knows(name)) {
      all_.assess(nodes_.at(name), &lease, now_);
      some_.assess(nodes_.at(name), &lease, now_);
    } else {
      some_.touch(name);
    }
  }

  /// Posts the status of all nodes that are up.
  void post_all() {
    for (const auto& [name, node] : nodes_) {
      if (down_.contains(name) || !often()) continue;
      if (rng_.chance_ppm(700'000)) renew(name);
      if (rng_.chance_ppm(300'000)) post(name, sick_.contains(name) ? "False" : "True");
    }
  }

  void change(std::size_t i) {
    const std::string name = name_of(i);
    if (!nodes_.contains(name)) return add(i);
    some_.touch(name);
    switch (rng_.below(9)) {
      case 0:
        nodes_.erase(name);
        break;
      case 1:
        add(i);  // another node of the same name
        break;
      case 2:
        nodes_.at(name).metadata.labels["topology.kubernetes.io/zone"] = fmt::format("z{}", rng_.below(kZones));
        break;
      case 3:
        nodes_.at(name).metadata.labels["node.kubernetes.io/exclude-disruption"] = "";
        break;
      case 4:
        nodes_.at(name).metadata.labels.erase("node.kubernetes.io/exclude-disruption");
        break;
      case 5:
        leases_.erase(name);
        break;
      case 6:
        toggle(sick_, name);
        break;
      case 7:
        if (!rng_.chance_ppm(200'000)) return toggle(down_, name);
        for (const auto& [each, node] : nodes_) down_.insert(each);  // everything falls silent
        break;
      default:
        down_.clear();
        break;
    }
  }

  static void toggle(std::set<std::string>& names, const std::string& name) {
    if (names.erase(name) == 0) names.insert(name);
  }

  const api::Lease* lease_of(const std::string& name) const {
    const auto lease = leases_.find(name);
    return lease == leases_.end() ? nullptr : &lease->second;
  }

  void pass() {
    std::vector<const api::Node*> snapshot;
    for (const auto& [name, node] : nodes_) snapshot.push_back(&node);
    const auto first = all_.begin_pass(snapshot, now_);
    const auto second = some_.begin_pass(
        [this](std::string_view name) {
          const auto node = nodes_.find(std::string(name));
          return node == nodes_.end() ? nullptr : &node->second;
        },
        now_);
    EXPECT_EQ(first.added, second.added);
    EXPECT_EQ(first.deleted, second.deleted);
    if (evicts_by_timeout()) evictions_.on_opening(second);
    due_.clear();
    for (const api::Node* node : second.due) due_.insert(node->metadata.name);
    nodes_seen_ += nodes_.size();
    nodes_due_ += due_.size();
    for (const api::Node* node : first.untaint) untaint(node->metadata.name);

    std::map<std::string, Assessment> assessed;
    for (const auto& [name, node] : nodes_) {
      if (!assess(name, assessed)) continue;
      if (late_) decide(name, assessed.at(name));
    }
    finish(snapshot);
    if (late_) return;
    for (const auto& [name, assessment] : assessed) decide(name, assessment);
  }

  /// False: the node's status could not be written.
  bool assess(const std::string& name, std::map<std::string, Assessment>& assessed) {
    api::Node& node = nodes_.at(name);
    const Assessment wanted = all_.assess(node, lease_of(name), now_);
    if (due_.contains(name)) {
      EXPECT_EQ(decision_text(some_.assess(node, lease_of(name), now_)), decision_text(wanted)) << name;
    } else {
      EXPECT_EQ(wanted.current, Readiness::kTrue) << name << " was not due";
      EXPECT_FALSE(wanted.silent || wanted.write) << name << " was not due";
    }
    if (wanted.write) {
      if (!often()) return false;
      node.status.conditions = *wanted.write;
      some_.touch(name);
      all_.confirm_written(node, wanted, now_);
      some_.confirm_written(node, wanted, now_);
    }
    all_.count(node, wanted);
    if (due_.contains(name)) some_.count(node, wanted);
    assessed.emplace(name, wanted);
    return true;
  }

  void finish(const std::vector<const api::Node*>& snapshot) {
    const auto wanted = all_.finish_pass(snapshot, now_);
    const auto got = some_.finish_pass(now_);
    EXPECT_EQ(wanted.entered_master_disruption, got.entered_master_disruption);
    EXPECT_EQ(wanted.left_master_disruption, got.left_master_disruption);
    EXPECT_EQ(wanted.master_disruption, got.master_disruption);
    if (evicts_by_timeout()) {
      if (got.entered_master_disruption) evictions_.cancel_all();
    } else {
      EXPECT_EQ(!wanted.untaint.empty(), got.sweep && !snapshot.empty());
    }
    ASSERT_EQ(wanted.changes.size(), got.changes.size());
    for (std::size_t i = 0; i < got.changes.size(); ++i) {
      EXPECT_EQ(wanted.changes[i].zone, got.changes[i].zone);
      EXPECT_EQ(wanted.changes[i].before, got.changes[i].before);
      EXPECT_EQ(wanted.changes[i].after, got.changes[i].after);
      EXPECT_EQ(wanted.changes[i].counts, got.changes[i].counts);
      EXPECT_EQ(wanted.changes[i].rate, got.changes[i].rate);
    }
    for (const api::Node* node : wanted.untaint) untaint(node->metadata.name);
  }

  void decide(const std::string& name, const Assessment& assessment) {
    const api::Node& node = nodes_.at(name);
    const bool due = due_.contains(name);
    if (!rng_.chance_ppm(970'000)) {  // the node's pods could not be listed
      all_.pods_unknown(node, assessment);
      if (due) some_.pods_unknown(node, assessment);
      return;
    }
    if (!evicts_by_timeout()) {
      const TaintAction wanted = all_.decide_taint(node, assessment, now_);
      EXPECT_EQ(to_string(due ? some_.decide_taint(node, assessment, now_) : TaintAction::kNone), to_string(wanted))
          << name;
      carry_out(name, wanted);
    } else {
      const auto wanted = all_.decide_eviction(node, assessment, now_);
      EXPECT_EQ(due ? evictions_.decide_eviction(node, assessment, now_) : TimeoutEvictions::Step::kNone, wanted)
          << name;
    }
    const auto wanted = all_.decide_marking(node, assessment);
    const auto got = due ? some_.decide_marking(node, assessment) : NodeMonitor::PodMarking{};
    EXPECT_EQ(got.mark, wanted.mark) << name;
    EXPECT_EQ(got.node_event, wanted.node_event) << name;
    if (!wanted.mark) return;
    const bool all = often();
    all_.pods_marked(name, all);
    some_.pods_marked(name, all);
  }

  void carry_out(const std::string& name, TaintAction action) {
    if (action == TaintAction::kRemoveBoth) untaint(name);
    if (action == TaintAction::kBecomeNotReady || action == TaintAction::kBecomeUnreachable) taint(name, action);
  }

  void untaint(const std::string& name) {
    if (!often()) return;
    api::Node& node = nodes_.at(name);
    for (const std::string_view key : {profile_.facts.not_ready_taint, profile_.facts.unreachable_taint}) {
      if (erase_taint(node.spec.taints, {std::string(key), {}, std::string(api::kNoExecute), {}})) some_.touch(name);
    }
    all_.dequeue(node);
    some_.dequeue(node);
  }

  bool taint(const std::string& name, TaintAction action) {
    const bool not_ready = action == TaintAction::kBecomeNotReady;
    const std::string_view added = not_ready ? profile_.facts.not_ready_taint : profile_.facts.unreachable_taint;
    const std::string_view removed = not_ready ? profile_.facts.unreachable_taint : profile_.facts.not_ready_taint;
    if (!often()) return false;
    api::Node& node = nodes_.at(name);
    put_taint(node.spec.taints, {std::string(added), {}, std::string(api::kNoExecute), {}});
    erase_taint(node.spec.taints, {std::string(removed), {}, std::string(api::kNoExecute), {}});
    some_.touch(name);
    return true;
  }

  void process_queues() {
    std::vector<std::string> wanted;
    std::vector<std::string> got;
    std::vector<bool> handled;
    all_.process_queues(now_, [&](const std::string& zone, const RateLimitedQueue::Entry& entry) {
      wanted.push_back(fmt::format("{} {} {}", zone, entry.name, entry.uid));
      handled.push_back(handle(entry.name));
      return handled.back() ? NodeMonitor::Answer{}
                            : NodeMonitor::Answer{NodeMonitor::Handled::kRetry, milliseconds(50)};
    });
    some_.process_queues(now_, [&](const std::string& zone, const RateLimitedQueue::Entry& entry) {
      got.push_back(fmt::format("{} {} {}", zone, entry.name, entry.uid));
      const bool done = got.size() > handled.size() || handled[got.size() - 1];
      return done ? NodeMonitor::Answer{} : NodeMonitor::Answer{NodeMonitor::Handled::kRetry, milliseconds(50)};
    });
    EXPECT_EQ(wanted, got);
  }

  bool handle(const std::string& name) {
    const auto node = nodes_.find(name);
    if (evicts_by_timeout()) {
      if (!often()) return false;
      all_.evicted(name);
      evictions_.evicted(name);
      return true;
    }
    if (node == nodes_.end()) return true;
    const auto readiness = readiness_of(node->second);
    if (!readiness) return false;
    return *readiness == Readiness::kTrue || taint(name, taint_action_for(*readiness));
  }

  void compare() {
    for (std::size_t i = 0; i < kNames; ++i) {
      const HealthRecord* wanted = all_.find_record(name_of(i));
      EXPECT_EQ(some_.find_record(name_of(i)), wanted == nullptr ? std::nullopt : std::optional(*wanted)) << name_of(i);
      EXPECT_EQ(some_.knows(name_of(i)), all_.knows(name_of(i))) << name_of(i);
    }
    ASSERT_EQ(some_.zones().size(), all_.zones().size());
    auto got = some_.zones().begin();
    for (const auto& [key, zone] : all_.zones()) {
      EXPECT_EQ(got->first, key);
      EXPECT_EQ(got->second.state, zone.state) << key;
      EXPECT_EQ(got->second.counts, zone.counts) << key;
      EXPECT_EQ(got->second.queue.limiter().effective_rate(), zone.queue.limiter().effective_rate()) << key;
      EXPECT_EQ(order_of(got->second.queue), order_of(zone.queue)) << key;
      for (std::size_t i = 0; i < kNames; ++i) {
        EXPECT_EQ(got->second.queue.knows(name_of(i)), zone.queue.knows(name_of(i))) << key << name_of(i);
      }
      ++got;
    }
  }

  static std::vector<std::pair<std::string, Instant>> order_of(const RateLimitedQueue& queue) {
    std::vector<std::pair<std::string, Instant>> order;
    for (const RateLimitedQueue::Entry* entry : queue.entries()) order.emplace_back(entry->name, entry->process_at);
    return order;
  }

  Profile profile_;
  Rng rng_;
  bool late_;  // decide before the zones are evaluated
  ScanningMonitor all_;
  NodeMonitor some_;
  TimeoutEvictions evictions_;  // over some_; used by EvictionMode::kLegacy
  Now now_{Instant(hours(10)), WallTime(seconds(1'700'000'000))};
  std::uint64_t uids_ = 0;
  std::map<std::string, api::Node> nodes_;
  std::map<std::string, api::Lease> leases_;
  std::set<std::string> down_;
  std::set<std::string> sick_;
  std::set<std::string> due_;
  std::uint64_t nodes_seen_ = 0;
  std::uint64_t nodes_due_ = 0;
};

struct Case {
  std::string name;
  Profile profile;
};

std::vector<Case> cases() {
  std::vector<Case> all{{"spillway", Profile{}}};
  Profile timeout;
  timeout.mode = EvictionMode::kLegacy;
  all.push_back({"spillway_timeout", timeout});
  for (const Line line : kLines) {
    std::string name(to_string(line));
    name.replace(name.find('.'), 1, "_");
    all.push_back({name + "_taint", upstream_profile(line, EvictionMode::kTaint)});
    if (line == Line::kV1_7 || line == Line::kV1_19) {
      all.push_back({name + "_legacy", upstream_profile(line, EvictionMode::kLegacy)});
    }
  }
  return all;
}

class IncrementalPass : public ::testing::TestWithParam<Case> {};

TEST_P(IncrementalPass, DecidesWhatAPassOverAllNodesDecides) {
  constexpr std::uint64_t kSeeds = 8;
  constexpr int kSteps = 120;
  std::uint64_t seen = 0;
  std::uint64_t due = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Pair pair(GetParam().profile, seed);
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(fmt::format("seed {} step {}", seed, step));
      pair.step();
      if (HasFailure()) return;
    }
    seen += pair.nodes_seen();
    due += pair.nodes_due();
  }
  EXPECT_LT(due, seen) << "something must have been left out";
}

INSTANTIATE_TEST_SUITE_P(Profiles, IncrementalPass, ::testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace spillway::lifecycle
