#include "sim/replay/lifecycle_replay.h"

#include "api/text/time_text.h"
#include "controllers/nodes/lifecycle_witness.h"
#include "sim/cluster.h"

#include "recording/frame.h"
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace spillway::sim {
namespace {

using api::Json;
using controllers::ControllerState;
using controllers::LifecycleDecided;
using controllers::LifecycleDecision;
using controllers::LifecycleRecord;
using controllers::NodeChanged;
using controllers::NodeGone;
using controllers::NodeKnown;
using controllers::NodeSaid;
using controllers::SignsOfLife;
using recording::ReplayOutcome;

constexpr std::size_t kProgressEvery = 1000;  // records
/// The time until the server is up, then until the known nodes are up.
constexpr Duration kServerBoots = seconds(5);
constexpr Duration kNodesBoot = seconds(10);
/// The time from the start of the controllers until their caches are filled, about.
constexpr Duration kCachesFill = milliseconds(3);
/// A node that is silent for this long beyond the grace period is marked.
constexpr Duration kWarmMargin = seconds(5);
/// The longest silence of a node that a brake keeps from being marked.
constexpr Duration kSilentMax = minutes(10);
constexpr Duration kHeartbeat = seconds(5);
constexpr Duration kEndMargin = seconds(1);
/// The shortest period that a recording may give its controller, and the longest time in which nothing may happen in
/// it: without these bounds a replay might not end.
constexpr Duration kPeriodMin = milliseconds(100);
constexpr Duration kStillMax = hours(24 * 31);
constexpr Duration kFar = hours(24 * 365 * 100);
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

ReplayOutcome outcome_of(const std::string& subject, const std::string& what, const std::string& reasons, Now at) {
  return {.at = at, .subject = subject, .key = subject + "\n" + what, .what = what, .reasons = reasons, .line = {}};
}

std::string node_path_of(const std::string& name) {
  return "/api/v1/nodes/" + name;
}

ClusterOptions cluster_options(const controllers::RecordedController& controller,
                               controllers::LifecycleWitness& witness) {
  ClusterOptions options;
  options.nodes = 0;
  options.faults.latency_min = microseconds(100);
  options.faults.latency_max = microseconds(300);
  controllers::ControllerSet::Options& set = options.controllers;
  set.enabled = {true,  false, false, false,
                 false, false, false, {.job = false, .cron_job = false, .ttl_after_finished = false},
                 false};
  set.enabled.endpoints = {.endpoints = false, .endpoint_slices = false, .slice_mirroring = false};
  set.node_lifecycle.node_monitor_period = controller.node_monitor_period;
  set.node_lifecycle.monitor = controller.monitor;
  set.node_lifecycle.profile = controller.profile();
  set.node_lifecycle.witness = &witness;
  set.taint_eviction.profile = set.node_lifecycle.profile;
  set.brakes = controller.brakes;
  return options;
}

/// Replays a controller's run, or the rest of one behind a gap.
class Session final : public controllers::LifecycleWitness {
 public:
  Session(const ControllerState& state, const std::vector<NodeKnown>& nodes, controllers::RecordedController controller,
          std::vector<ReplayOutcome>& outcomes)
      : state_(state), outcomes_(outcomes), cluster_(cluster_options(controller, *this)) {
    cluster_.crash_controllers();
    cluster_.crash_scheduler();
    const Duration grace =
        std::max({controller.monitor.health.node_monitor_grace_period + kWarmMargin,
                  state.controller.monitor.health.node_monitor_grace_period + kWarmMargin, kSilentMax});
    const Duration warm = warm_time(nodes, grace);
    base_ = state.at.mono - warm - kServerBoots - kNodesBoot;
    cluster_.run_for(kServerBoots);
    for (const NodeKnown& each : nodes) put_in_place(each);
    cluster_.run_for(kNodesBoot - kCachesFill);
    cluster_.restart_controllers();
    // Heartbeats until each node fell silent, as frequent as those of nodes.
    std::multimap<Instant, const NodeKnown*> heartbeats;
    for (const NodeKnown& each : nodes) {
      for (Instant at = each.last_sign; !each.marked && state.at.mono - at < warm; at -= kHeartbeat)
        heartbeats.emplace(at, &each);
    }
    for (const auto& [at, each] : heartbeats) receive_heartbeat(each->said.name, each->leased, at);
    run_to(state.at.mono);
  }

  void take(const NodeChanged& changed) {
    run_to(changed.at.mono);
    const auto known = said_.find(changed.said.name);
    if (known == said_.end()) return create(changed.said, false, {});
    const bool moved = known->second.labels != changed.said.labels;
    known->second = changed.said;
    if (moved) cluster_.patch(node_path_of(changed.said.name), labels_of(changed.said));
    post(changed.said);
  }

  void take(const NodeGone& gone) {
    run_to(gone.at.mono);
    said_.erase(gone.name);
    cluster_.remove(node_path_of(gone.name));
    if (leased_.erase(gone.name) > 0) cluster_.remove(fmt::format("{}/{}", kLeases, gone.name));
  }

  void receive_heartbeat(const std::string& node, bool lease, Instant at) {
    run_to(at);
    if (lease) return renew(node);
    if (const auto known = said_.find(node); known != said_.end()) post(known->second);
  }

  void run_to(Instant at) {
    const Instant here = at - base_ + Instant();
    if (here > cluster_.time().now().mono) cluster_.run_for(here - cluster_.time().now().mono);
  }

  // LifecycleWitness.
  void on_start(Now) override {}

  void on_pass(Now) override {}

  void on_node(const std::string&, const api::Node*, Now) override {}

  void on_lease(const std::string&, const api::Lease&, Now) override {}

  /// Notes a decision once: each pass repeats decisions that are not carried out yet, as when they were recorded.
  void on_decision(const LifecycleDecision& decision, Now now) override {
    std::string& last = last_decision_[decision.subject];
    if (std::exchange(last, decision.what) == decision.what) return;
    const Instant at = base_ + (now.mono - Instant());
    if (at < state_.at.mono - kCachesFill) return;  // before the recording begins
    const auto after = std::chrono::duration_cast<microseconds>(at - state_.at.mono);
    outcomes_.push_back(outcome_of(decision.subject, decision.what, decision.reasons, {at, state_.at.wall + after}));
  }

 private:
  /// The time before the recording at which the replay has to begin, in whole periods, so that its passes come at the
  /// recorded times.
  Duration warm_time(const std::vector<NodeKnown>& nodes, Duration most) const {
    if (state_.segment == 0 && !state_.after_gap) return {};
    Duration longest{};
    for (const NodeKnown& each : nodes) {
      const Duration silent = state_.at.mono - each.last_sign;
      if (!each.marked && silent <= most) longest = std::max(longest, silent);
    }
    const Duration period = std::max<Duration>(state_.controller.node_monitor_period, milliseconds(1));
    return (longest / period + 1) * period;
  }

  void put_in_place(const NodeKnown& known) {
    create(known.said, known.marked, known.taint);
    if (known.leased) renew(known.said.name);
  }

  Json labels_of(const NodeSaid& said) const {
    Json labels = Json::object();
    for (const auto& [key, value] : said.labels) labels[key] = value;
    return Json::object({{"metadata", Json::object({{"labels", std::move(labels)}})}});
  }

  std::string now_text() { return api::format_micro_time(cluster_.time().now().wall); }

  Json conditions_of(const NodeSaid& said, bool marked) {
    const std::string now = api::format_time(cluster_.time().now().wall);
    Json conditions = Json::array();
    for (const NodeSaid::Condition& each : said.conditions) {
      conditions.if_array()->push_back(Json::object({{"type", each.type},
                                                     {"status", marked ? "Unknown" : each.status},
                                                     {"reason", marked ? "NodeStatusUnknown" : each.reason},
                                                     {"lastHeartbeatTime", now},
                                                     {"lastTransitionTime", now}}));
    }
    if (marked && said.conditions.empty()) {
      conditions.if_array()->push_back(Json::object(
          {{"type", "Ready"}, {"status", "Unknown"}, {"reason", "NodeStatusUnknown"}, {"lastTransitionTime", now}}));
    }
    return Json::object({{"status", Json::object({{"conditions", std::move(conditions)}})}});
  }

  void create(const NodeSaid& said, bool marked, const std::string& taint) {
    said_.insert_or_assign(said.name, said);
    last_decision_.erase(said.name);
    Json node = labels_of(said);
    node["apiVersion"] = "v1";
    node["kind"] = "Node";
    node["metadata"]["name"] = said.name;
    if (!taint.empty()) {
      node.make({"spec", "taints"}) =
          Json::array({Json::object({{"key", taint}, {"effect", "NoExecute"}, {"timeAdded", now_text()}})});
    }
    if (!said.conditions.empty() || marked) node["status"] = *conditions_of(said, marked).find("status");
    cluster_.create("/api/v1/nodes", node);
  }

  void post(const NodeSaid& said) {
    last_decision_.erase(said.name);
    cluster_.patch(node_path_of(said.name) + "/status", conditions_of(said, false));
  }

  void renew(const std::string& node) {
    last_decision_.erase(node);
    Json spec = Json::object({{"holderIdentity", node}, {"renewTime", now_text()}});
    if (!leased_.insert(node).second) {
      return cluster_.patch(fmt::format("{}/{}", kLeases, node), Json::object({{"spec", std::move(spec)}}));
    }
    spec["leaseDurationSeconds"] = 40;
    cluster_.create(kLeases, Json::object({{"apiVersion", "coordination.k8s.io/v1"},
                                           {"kind", "Lease"},
                                           {"metadata", Json::object({{"name", node}})},
                                           {"spec", std::move(spec)}}));
  }

  ControllerState state_;
  std::vector<ReplayOutcome>& outcomes_;
  std::map<std::string, NodeSaid> said_;
  std::set<std::string> leased_;
  std::map<std::string, std::string> last_decision_;
  Instant base_{};  // the time of the recording at which virtual time begins
  Cluster cluster_;
};

class Replaying {
 public:
  explicit Replaying(const ReconfigureController& reconfigure) : reconfigure_(reconfigure) {}

  Outcome take(LifecycleRecord record) {
    if (auto* const known = std::get_if<NodeKnown>(&record)) {
      if (!opening_) return known_in_between(*known);
      number(known->said.name);
      nodes_.push_back(std::move(*known));
      return {};
    }
    SPILLWAY_TRY_VOID(open());
    if (auto* const state = std::get_if<ControllerState>(&record)) return begin(*state);
    if (!session_) return make_error(ErrorCode::kInvalid, "the recording does not begin with a state");
    return std::visit([this](const auto& each) { return replay(each); }, record);
  }

  Result<LifecycleReplayReport> finish() {
    SPILLWAY_TRY_VOID(open());
    if (!session_) return make_error(ErrorCode::kInvalid, "the recording holds nothing");
    session_->run_to(end_ + kEndMargin);
    session_.reset();
    std::erase_if(would_be_, [this](const ReplayOutcome& each) { return each.at.mono > end_ && !has_decided(each); });
    report_.nodes = seen_.size();
    report_.rows = recording::pair_rows(std::exchange(decided_, {}), std::exchange(would_be_, {}),
                                        [](const ReplayOutcome& was, const ReplayOutcome& would_be) {
                                          return std::chrono::abs(would_be.at.mono - was.at.mono) <= kSameWithin;
                                        });
    return std::move(report_);
  }

 private:
  bool has_decided(const ReplayOutcome& would_be) const {
    return std::ranges::any_of(decided_, [&would_be](const ReplayOutcome& each) {
      return each.key == would_be.key && std::chrono::abs(each.at.mono - would_be.at.mono) <= kSameWithin;
    });
  }

  void number(const std::string& name) {
    seen_.insert(name);
    numbers_.push_back(name);
  }

  /// Replays the passes up to `at`. kInvalid: the recording does not fit from there on.
  Outcome passes(Now at) {
    const bool is_time = std::chrono::abs(at.mono - Instant()) < kFar && std::chrono::abs(end_ - Instant()) < kFar;
    if (!is_time) return make_error(ErrorCode::kInvalid, "a time of the recording is none");
    if (at.mono - end_ > kStillMax || end_ - at.mono > kStillMax)
      return make_error(ErrorCode::kInvalid, "nothing happens in the recording for more than a month");
    end_ = std::max(end_, at.mono);
    report_.end = at.wall;
    return {};
  }

  /// Begins a segment: the run continues, or a new one begins.
  Outcome begin(const ControllerState& state) {
    const bool same_run = session_ != nullptr && state.run == run_;
    continues_ = same_run && state.segment == segment_ + 1 && !state.after_gap;
    run_ = state.run;
    segment_ = state.segment;
    numbers_.clear();
    nodes_.clear();
    opening_ = state;
    if (!report_.begin) report_.begin = state.at.wall;
    if (!continues_) {
      ++(same_run ? report_.gaps : report_.runs);
      end_ = state.at.mono;  // another boot of the machine may count from anywhere
    }
    report_.controller = state.controller;
    return passes(state.at);
  }

  /// Begins a run once its nodes are known.
  Outcome open() {
    if (!opening_) return {};
    const ControllerState state = *std::exchange(opening_, std::nullopt);
    if (std::exchange(continues_, false)) return {};
    controllers::RecordedController controller = state.controller;
    if (reconfigure_) {
      SPILLWAY_TRY(other, reconfigure_(controller));
      controller = std::move(other);
    }
    if (controller.node_monitor_period < kPeriodMin)
      return make_error(ErrorCode::kInvalid, "a controller that checks its nodes more often than every 100 ms");
    session_.reset();
    session_ = std::make_unique<Session>(state, nodes_, std::move(controller), would_be_);
    return {};
  }

  static Outcome known_in_between(const NodeKnown& known) {
    return make_error(ErrorCode::kInvalid, "node {} is named in the middle of a segment", known.said.name);
  }

  Outcome replay(const NodeChanged& changed) {
    SPILLWAY_TRY_VOID(passes(changed.at));
    if (std::ranges::find(numbers_, changed.said.name) == numbers_.end()) number(changed.said.name);
    session_->take(changed);
    return {};
  }

  Outcome replay(const NodeGone& gone) {
    SPILLWAY_TRY_VOID(passes(gone.at));
    for (std::string& each : numbers_) {
      if (each == gone.name) each.clear();
    }
    session_->take(gone);
    return {};
  }

  Outcome replay(const SignsOfLife& heartbeats) {
    for (const SignsOfLife::One& each : heartbeats.signs) {
      if (each.node >= numbers_.size())
        return make_error(ErrorCode::kInvalid, "a heartbeat of node {}, of {}", each.node, numbers_.size());
      if (each.after < Duration::zero() || each.after > kStillMax)
        return make_error(ErrorCode::kInvalid, "a heartbeat before or long after those of its bundle");
      SPILLWAY_TRY_VOID(passes(heartbeats.at));
      const Instant at = heartbeats.at.mono + each.after;
      SPILLWAY_TRY_VOID(passes({at, heartbeats.at.wall + std::chrono::duration_cast<microseconds>(each.after)}));
      ++report_.heartbeats;
      if (!numbers_[each.node].empty()) session_->receive_heartbeat(numbers_[each.node], each.lease, at);
    }
    return {};
  }

  Outcome replay(const LifecycleDecided& decided) {
    SPILLWAY_TRY_VOID(passes(decided.at));
    decided_.push_back(outcome_of(decided.subject, decided.what, decided.reasons, decided.at));
    return {};
  }

  Outcome replay(const ControllerState&) { return {}; }

  Outcome replay(const NodeKnown&) { return {}; }

  const ReconfigureController& reconfigure_;
  std::optional<ControllerState> opening_;
  bool continues_ = false;
  std::vector<NodeKnown> nodes_;
  std::vector<std::string> numbers_;  // names by number; empty: the node was deleted
  std::set<std::string> seen_;
  std::uint64_t run_ = 0;
  std::uint64_t segment_ = 0;
  Instant end_{};
  std::vector<ReplayOutcome> decided_;
  std::vector<ReplayOutcome> would_be_;
  std::unique_ptr<Session> session_;
  LifecycleReplayReport report_;
};

}  // namespace

Result<LifecycleReplayReport> replay_lifecycle(std::string_view file, const ReconfigureController& reconfigure,
                                               const std::function<bool(std::size_t, std::size_t)>& should_continue) {
  SPILLWAY_TRY(frames, recording::read_frames(file, recording::kControllerKind));
  Replaying replaying(reconfigure);
  for (std::size_t i = 0; i < frames.records.size(); ++i) {
    if (should_continue && i % kProgressEvery == 0 && !should_continue(i, frames.records.size()))
      return make_error(ErrorCode::kServiceUnavailable, "interrupted");
    SPILLWAY_TRY(record, controllers::decode_lifecycle_record(frames.records[i]));
    SPILLWAY_TRY_VOID(replaying.take(std::move(record)));
  }
  SPILLWAY_TRY(report, replaying.finish());
  report.torn_bytes = frames.torn_bytes;
  return std::move(report);
}

}  // namespace spillway::sim
