#include "controllers/nodes/node_lifecycle.h"

#include "controllers/nodes/manual_hold.h"
#include "controllers/nodes/node_pass.h"
#include "controllers/shared/paths.h"
#include "policy/lifecycle/condition_taints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::Assessment;
using lifecycle::NodeMonitor;
using lifecycle::Readiness;

/// Attempts to mark a new pod on a lost node before it is left to the next pass. Upstream makes as many within a few
/// milliseconds; more would only repeat what the next pass does anyway.
constexpr int kPodTries = 4;
/// The longest time of a pass: it waits for reads of leases, each for at most this long.
constexpr Duration kPassTimeMax = seconds(10);

}  // namespace

NodeLifecycleController::NodeLifecycleController(Shared shared, PodsOf pods_of, LifecycleMetrics& metrics,
                                                 ActGate& gate, Rng rng, Options options,
                                                 const MakeNodeResponse& make_response)
    : shared_(shared),
      pods_of_(std::move(pods_of)),
      metrics_(metrics),
      gate_(gate),
      options_(options),
      monitor_(options.monitor, options.profile),
      statuses_(
          shared_, monitor_, metrics_, options_.monitor.health, options_.status,
          [this](const NodePtr& node, const Assessment& assessment, Now now) {
            on_status_settled(node, assessment, now);
          },
          [this](const std::string& node, Now now) { pass_->on_status_abandoned(node, now); }),
      taints_(shared_.client, shared_.nodes, rng.fork("taints"), shared_.log,
              options_.profile.remedies.retries_taint_writes ? NodeTaintWriter::Retry::kAll
                                                             : NodeTaintWriter::Retry::kConflicts),
      marker_(shared_, options.profile),
      acts_(shared_, gate_, options_.profile.facts.zone_labels, options_.witness),
      response_(make_response({.shared = shared_,
                               .monitor = monitor_,
                               .writer = taints_,
                               .acts = acts_,
                               .metrics = metrics_,
                               .pods_of = pods_of_,
                               .profile = options_.profile,
                               .tainting_period = options_.tainting_period,
                               .pod_eviction_timeout = options_.monitor.pod_eviction_timeout})) {
  shared_.nodes.cache().listen(
      {[this](const NodePtr& before, const NodePtr& after, Now now) { on_node(before, after, now); }});
  shared_.leases.cache().listen(
      {[this](const LeasePtr& before, const LeasePtr& after, Now now) { on_lease(before, after, now); }});
  shared_.pods.cache().listen(
      {[this](const PodPtr& before, const PodPtr& after, Now now) { on_pod(before, after, now); }});
}

void NodeLifecycleController::record_marked(const api::Node& node, const Assessment& assessment, Now now) {
  acts_.record_decision(node.metadata.name, "marked Unknown",
                        policy::render(assessment.reason(options_.monitor.health)), now);
}

void NodeLifecycleController::start(Now now) {
  started_ = true;
  if (options_.witness != nullptr) {
    options_.witness->on_start(now);
    for (const auto& [name, node] : shared_.nodes.cache().all()) options_.witness->on_node(name, node.get(), now);
    for (const auto& [key, lease] : shared_.leases.cache().all())
      options_.witness->on_lease(lease->metadata.name, *lease, now);
  }
  response_->start(now);
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    monitor_.touch(name);
    reconcile(node, now);
  }
  begin_pass(now);
}

void NodeLifecycleController::begin_pass(Now now) {
  if (options_.witness != nullptr) options_.witness->on_pass(now);
  const auto& nodes = shared_.nodes.cache();
  const auto find = [&nodes](std::string_view name) {
    const auto node = nodes.all().find(name);
    return node == nodes.all().end() ? nullptr : node->second.get();
  };
  const std::string_view controller = options_.profile.facts.controller_name;
  const NodeMonitor::Opening opening = monitor_.begin_pass(find, now);
  for (const api::Node* node : opening.added) {
    const std::string& name = node->metadata.name;
    acts_.record_event(*node, "RegisteredNode",
                       fmt::format("Node {} event: Registered Node {} in {}", name, name, controller), now);
  }
  for (const std::string& name : opening.deleted) {
    api::Node gone;
    gone.metadata.name = name;
    acts_.record_event(gone, "RemovingNode",
                       fmt::format("Node {} event: Removing Node {} from {}", name, name, controller), now);
  }
  log_new_zones();
  response_->on_opening(opening, now);

  check_hold();
  pass_ = std::make_shared<NodePass>(*this);
  pass_->start(opening.due, now);
}

/// Zones that are new, or had no node for a while.
void NodeLifecycleController::log_new_zones() {
  std::set<std::string> zones;
  for (const auto& [zone, state] : monitor_.zones()) {
    if (!zones_.contains(zone)) {
      shared_.log.info("initializing eviction metric for zone", {{"zone", lifecycle::readable_zone(zone)}});
    }
    zones.insert(zone);
  }
  zones_ = std::move(zones);
}

/// Updates the brakes with the age of this process's watches and clock, and the share of nodes that are late at once.
void NodeLifecycleController::feed_brakes(Now now) {
  lifecycle::Brakes& brakes = gate_.brakes();
  brakes.on_clock(now, options_.node_monitor_period + kPassTimeMax);
  std::optional<Duration> age;
  for (const client::InformerBase* informer : {static_cast<const client::InformerBase*>(&shared_.nodes),
                                               static_cast<const client::InformerBase*>(&shared_.leases)}) {
    if (const auto last = informer->last_received()) age = std::max(age.value_or(Duration::zero()), now.mono - *last);
  }
  brakes.on_watch_age(age);
  const auto heartbeats = monitor_.heartbeats(now.mono, options_.monitor.health.node_monitor_grace_period / 2);
  brakes.on_heartbeats(heartbeats.nodes, heartbeats.late, now);
}

/// Takes effect with the answer; until then the last hold applies.
void NodeLifecycleController::check_hold() {
  const std::string& name = options_.hold_config_map;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return;
  shared_.client.get(client::object_path("v1", "configmaps", name.substr(0, slash), name.substr(slash + 1)),
                     [this](const Result<api::Json>& outcome, Now) { on_hold_read(outcome); });
}

void NodeLifecycleController::on_hold_read(const Result<api::Json>& outcome) {
  if (!outcome && outcome.error().code != ErrorCode::kNotFound) return;
  gate_.set_manual_hold(outcome ? manual_hold_of(*outcome) : lifecycle::ManualHold());
}

NodeMonitor::Verdict NodeLifecycleController::evaluate_zones(Now now) {
  NodeMonitor::Verdict verdict = monitor_.finish_pass(now);
  report_verdict(verdict, now);
  if (verdict.left_master_disruption) gate_.brakes().on_storm_over(now);
  return verdict;
}

void NodeLifecycleController::end_pass(Now now) {
  metrics_.show_zones(monitor_, now.mono);
  response_->arm(now);
  shared_.client.at(next_pass(now), [this](Now then) { begin_pass(then); });
}

Instant NodeLifecycleController::next_pass(Now now) const {
  const Instant regular = now.mono + options_.node_monitor_period;
  if (!options_.profile.remedies.detect_at_deadline || !first_deadline_) return regular;
  // Silence counts when it is longer than the grace period.
  return std::min(regular, std::max(*first_deadline_ + milliseconds(1), now.mono + options_.pass_gap_min));
}

/// A sign of life is recorded when it arrives, or, as upstream does, when the next pass finds it.
void NodeLifecycleController::on_lease(const LeasePtr& before, const LeasePtr& after, Now now) {
  if (!started_ || !options_.profile.facts.leases) return;
  const std::string& name = (after ? after : before)->metadata.name;
  if (after && options_.witness != nullptr) options_.witness->on_lease(name, *after, now);
  if (!monitor_.knows(name)) return;  // the first pass over the node has not run yet
  const bool assessed = after && options_.profile.remedies.detect_at_deadline;
  if (const NodePtr node = assessed ? shared_.nodes.cache().find(name) : nullptr) {
    monitor_.assess(*node, after.get(), now);
  } else {
    monitor_.touch(name);
  }
}

void NodeLifecycleController::report_verdict(const NodeMonitor::Verdict& verdict, Now now) {
  if (verdict.entered_master_disruption) shared_.log.warning("every zone is disrupted: evictions stop");
  if (verdict.left_master_disruption) shared_.log.info("nodes are back: evictions resume");
  if (verdict.entered_master_disruption) acts_.record_decision("cluster", "evictions stop", {}, now);
  if (verdict.left_master_disruption) acts_.record_decision("cluster", "evictions resume", {}, now);
  for (const NodeMonitor::ZoneChange& change : verdict.changes) {
    record_zone(change, now);
    shared_.log.info("zone changed", {{"zone", lifecycle::readable_zone(change.zone)},
                                      {"state", lifecycle::to_string(change.after)},
                                      {"before", change.before ? lifecycle::to_string(*change.before) : "none"},
                                      {"nodes", change.counts.size()},
                                      {"unready_nodes", change.counts.unready},
                                      {"eviction_rate", change.rate}});
  }
}

/// A new zone that is Normal is no decision.
void NodeLifecycleController::record_zone(const NodeMonitor::ZoneChange& change, Now now) {
  using lifecycle::ZoneState;
  if (change.before.value_or(ZoneState::kInitial) == ZoneState::kInitial && change.after == ZoneState::kNormal) return;
  acts_.record_decision(fmt::format("zone {}", lifecycle::readable_zone(change.zone)),
                        std::string(lifecycle::to_string(change.after)),
                        fmt::format("nodes={} unready_nodes={} nodes_per_second={}", change.counts.size(),
                                    change.counts.unready, change.rate),
                        now);
}

void NodeLifecycleController::act(const NodePtr& node, const Assessment& assessment, Now now) {
  const std::string& name = node->metadata.name;
  if (statuses_.busy(name)) return;
  if (assessment.write) {
    if (acts_.ask_gate(lifecycle::ActKind::kMarkNotReady, *node, now)) return;  // retried by the next pass
    record_marked(*node, assessment, now);
    return statuses_.write(node, assessment, now);
  }
  follow_status(node, assessment, now);
}

/// The node's conditions are Unknown now, or it has posted before they could be written.
void NodeLifecycleController::on_status_settled(const NodePtr& node, const Assessment& assessment, Now now) {
  if (pass_->on_status_settled(node, assessment, now)) return;
  follow_status(node, assessment, now);
  response_->arm(now);
}

void NodeLifecycleController::follow_status(const NodePtr& node, const Assessment& assessment, Now now) {
  if (assessment.current == Readiness::kTrue) gate_.release(node_subject(node->metadata.name));
  Pods pods;
  if (options_.profile.facts.lists_pods_first && assessment.current) {
    pods = pods_of_(node->metadata.name);
    if (!pods) return monitor_.pods_unknown(*node, assessment);
  }
  response_->on_assessed(node, assessment, pods, now);
  mark_pods(node, assessment, pods, now);
}

void NodeLifecycleController::on_node(const NodePtr& before, const NodePtr& after, Now now) {
  if (!started_) return;
  const std::string& name = (after ? after : before)->metadata.name;
  if (options_.witness != nullptr) options_.witness->on_node(name, after.get(), now);
  monitor_.touch(name);
  if (after) reconcile(after, now);
}

/// Applies the consequences of the node object alone, without any limiter: the response to a node that is Ready again,
/// NoSchedule taints, labels.
void NodeLifecycleController::reconcile(const NodePtr& node, Now now) {
  response_->on_node(node, now);
  if (!options_.reconcile_nodes) return;
  if (!lifecycle::condition_taint_change(*node).empty()) {
    const auto edit = [uid = node->metadata.uid](api::Node& seen, Now then) {
      if (seen.metadata.uid != uid) return false;
      const lifecycle::TaintChange change = lifecycle::condition_taint_change(seen);
      for (api::Taint taint : change.add) {
        taint.time_added = std::chrono::floor<seconds>(then.wall);
        lifecycle::put_taint(seen.spec.taints, taint);
      }
      for (const api::Taint& taint : change.remove) lifecycle::erase_taint(seen.spec.taints, taint);
      return !change.empty();
    };
    taints_.apply(node->metadata.name, edit, {}, now);
  }
  const api::StringMap labels = lifecycle::label_changes(node->metadata.labels);
  if (labels.empty() || !labelling_.insert(node->metadata.name).second) return;
  api::Json patch = api::Json::object();
  for (const auto& [key, value] : labels) patch.make({"metadata", "labels"})[key] = value;
  shared_.client.patch(node_path(node->metadata.name), client::PatchType::kMerge, patch,
                       [this, name = node->metadata.name](const auto& outcome, Now) { on_labelled(name, outcome); });
}

/// After a failure the next event of the node tries again.
void NodeLifecycleController::on_labelled(const std::string& name, const Result<api::Json>& outcome) {
  labelling_.erase(name);
  if (outcome) return;
  shared_.log.warning("node labels were not written", {{"node", name}, {"error", outcome.error().text()}});
}

void NodeLifecycleController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!started_ || !after || after->spec.node_name.empty()) return;
  response_->on_pod(after);
  if (!options_.profile.facts.pod_updates) return;
  if (before && before->spec.node_name == after->spec.node_name && before->metadata.uid == after->metadata.uid) return;
  follow_pod(client::key_of(after->metadata), kPodTries, now);
}

/// A pod was bound to a node that may be lost already.
void NodeLifecycleController::follow_pod(const client::ObjectKey& key, int tries, Now now) {
  const PodPtr pod = shared_.pods.cache().find(key);
  const auto record = pod ? monitor_.find_record(pod->spec.node_name) : std::nullopt;
  if (!record || !record->ready) return;
  const auto end = [this, key, tries, node = pod->spec.node_name](bool good, Now then) {
    if (good) return;
    if (tries > 1) return follow_pod(key, tries - 1, then);
    monitor_.pods_marked(node, false);
  };
  const bool ready = record->ready->status == Readiness::kTrue;
  const auto mark = [this, pod, ready, end](bool good, Now then) {
    if (!good || ready) return end(good, then);
    marker_.mark({pod}, end, then);
  };
  const NodePtr node = shared_.nodes.cache().find(pod->spec.node_name);
  if (!node) return mark(true, now);
  response_->on_bound(pod, node, mark, now);
}

void NodeLifecycleController::mark_pods(const NodePtr& node, const Assessment& assessment, const Pods& listed,
                                        Now now) {
  const std::string& name = node->metadata.name;
  const NodeMonitor::PodMarking marking = monitor_.decide_marking(*node, assessment);
  if (marking.node_event) {
    acts_.record_event(*node, "NodeNotReady", fmt::format("Node {} status is now: NodeNotReady", name), now);
  }
  if (!marking.mark || !response_->marks_pods_of(*node)) return;
  const Pods pods = listed ? listed : pods_of_(name);
  if (!pods) return;
  marker_.mark(*pods, [this, name](bool all, Now) { monitor_.pods_marked(name, all); }, now);
}

}  // namespace spillway::controllers
