#include "controllers/nodes/node_lifecycle.h"

#include "api/codec/codec.h"
#include "base/check.h"
#include "controllers/nodes/manual_hold.h"
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
using lifecycle::TaintAction;

constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr Duration kPassTimeMax = seconds(10);  // a pass waits for live reads, each at most this long

std::string lease_path(const std::string& name) {
  return client::object_path("coordination.k8s.io/v1", "leases", kLeaseNamespace, name);
}

std::string lease_key(const std::string& node) {
  return fmt::format("{}/{}", kLeaseNamespace, node);
}

std::string subject_of(const std::string& node) {
  return "node/" + node;
}

}  // namespace

NodeLifecycleController::NodeLifecycleController(Shared shared, const PodsByNode& pods_by_node,
                                                 LifecycleMetrics& metrics, ActGate& gate, Rng rng, Options options)
    : shared_(shared),
      pods_by_node_(pods_by_node),
      metrics_(metrics),
      gate_(gate),
      options_(options),
      monitor_(options.monitor, options.profile),
      statuses_(shared_, monitor_, metrics_, options_.monitor.health, options_.status,
                [this](const NodePtr& node, const Assessment& assessment, Now now) {
                  on_status_settled(node, assessment, now);
                }),
      taints_(shared_.client, shared_.nodes, rng.fork("taints"), shared_.log),
      marker_(shared_, options.profile),
      evictor_(shared_, options.profile) {
  shared_.nodes.cache().listen(
      {[this](const NodePtr& before, const NodePtr& after, Now now) { on_node(before, after, now); }});
  shared_.leases.cache().listen(
      {[this](const LeasePtr& before, const LeasePtr& after, Now now) { on_lease(before, after, now); }});
  shared_.pods.cache().listen(
      {[this](const PodPtr& before, const PodPtr& after, Now now) { on_pod(before, after, now); }});
}

void NodeLifecycleController::node_event(const api::Node& node, std::string_view reason, const std::string& message,
                                         Now now) {
  shared_.events.record(client::reference_to(node), client::EventType::kNormal, reason, message, now);
}

void NodeLifecycleController::start(Now now) {
  started_ = true;
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    monitor_.touch(name);
    reconcile(node, now);
  }
  begin_pass(now);
}

void NodeLifecycleController::begin_pass(Now now) {
  const auto& nodes = shared_.nodes.cache();
  const auto find = [&nodes](std::string_view name) {
    const auto node = nodes.all().find(name);
    return node == nodes.all().end() ? nullptr : node->second.get();
  };
  const NodeMonitor::Opening opening = monitor_.begin_pass(find, now);
  for (const api::Node* node : opening.added) {
    const std::string& name = node->metadata.name;
    node_event(*node, "RegisteredNode", fmt::format("Node {} event: Registered Node {} in Controller", name, name),
               now);
  }
  for (const std::string& name : opening.deleted) {
    api::Node gone;
    gone.metadata.name = name;
    node_event(gone, "RemovingNode", fmt::format("Node {} event: Removing Node {} from Controller", name, name), now);
  }
  for (const api::Node* node : opening.untaint) untaint(shared_.nodes.cache().find(node->metadata.name), now);

  pass_.clear();
  pass_.reserve(opening.due.size());
  look_for_hold();
  for (const api::Node* node : opening.due) {
    const std::string& name = node->metadata.name;
    const LeasePtr lease = shared_.leases.cache().find(lease_key(name));
    pass_.push_back({nodes.find(name), monitor_.assess(*node, lease.get(), now)});
    const bool asks = pass_.back().assessment.write && options_.live_lease_check && options_.profile.leases;
    if (asks && !statuses_.busy(name)) leases_outstanding_.insert(name);
  }
  feed_brakes(now);
  if (gate_.brakes().hold(now)) leases_outstanding_.clear();  // nothing would follow from the answers
  if (leases_outstanding_.empty()) return finish_pass(now);
  for (const std::string& name : leases_outstanding_) check_live_lease(name);
}

NodeLifecycleController::Seen& NodeLifecycleController::seen_in_pass(const std::string& name) {
  const auto seen = std::ranges::lower_bound(
      pass_, name, {}, [](const Seen& each) -> const std::string& { return each.node->metadata.name; });
  SPILLWAY_CHECK(seen != pass_.end() && seen->node->metadata.name == name);
  return *seen;
}

/// What this process knows about its own sight, and how much of the cluster is late at once.
void NodeLifecycleController::feed_brakes(Now now) {
  lifecycle::Brakes& brakes = gate_.brakes();
  brakes.on_clock(now, options_.node_monitor_period + kPassTimeMax);
  std::optional<Duration> age;
  for (const client::InformerBase* informer : {static_cast<const client::InformerBase*>(&shared_.nodes),
                                               static_cast<const client::InformerBase*>(&shared_.leases)}) {
    if (const auto heard = informer->last_heard()) age = std::max(age.value_or(Duration::zero()), now.mono - *heard);
  }
  brakes.on_watch_age(age);
  const auto heartbeats = monitor_.heartbeats(now.mono, options_.monitor.health.node_monitor_grace_period / 2);
  brakes.on_heartbeats(heartbeats.nodes, heartbeats.late, now);
}

/// Takes effect with the answer; until then the last one stands.
void NodeLifecycleController::look_for_hold() {
  const std::string& name = options_.hold_config_map;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return;
  shared_.client.get(client::object_path("v1", "configmaps", name.substr(0, slash), name.substr(slash + 1)),
                     [this](const Result<api::Json>& outcome, Now) {
                       if (!outcome && outcome.error().code != ErrorCode::kNotFound) return;
                       gate_.set_manual_hold(outcome ? manual_hold_of(*outcome) : lifecycle::ManualHold());
                     });
}

void NodeLifecycleController::check_live_lease(const std::string& name) {
  shared_.client.get(lease_path(name), [this, name](const Result<api::Json>& outcome, Now now) {
    on_live_lease(name, outcome, now);
    leases_outstanding_.erase(name);
    if (leases_outstanding_.empty()) finish_pass(now);
  });
}

void NodeLifecycleController::on_live_lease(const std::string& name, const Result<api::Json>& outcome, Now now) {
  Seen& seen = seen_in_pass(name);
  if (const NodePtr node = shared_.nodes.cache().find(name)) seen.node = node;
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) {
    seen.assessment = monitor_.assess(*seen.node, nullptr, now);
    return;
  }
  const auto lease = outcome ? api::decode<api::Lease>(*outcome) : Result<api::Lease>(outcome.error());
  if (lease) {
    seen.assessment = monitor_.assess(*seen.node, &*lease, now);
    if (!seen.assessment.silent) {
      shared_.log.warning("node is alive although its lease in the cache is old", {{"node", name}});
    }
    return;
  }
  // The API server cannot be asked: whatever is wrong, it is not known to be the node. It counts as it is recorded.
  shared_.log.warning("lease could not be checked", {{"node", name}, {"error", lease.error().text()}});
  seen.assessment.write.reset();
  seen.assessment.current = lifecycle::readiness_of(*seen.node);
}

void NodeLifecycleController::finish_pass(Now now) {
  first_deadline_ = monitor_.first_deadline(now.mono);
  for (Seen& seen : pass_) {
    const NodePtr node = shared_.nodes.cache().find(seen.node->metadata.name);
    seen.present = node && node->metadata.uid == seen.node->metadata.uid;
    if (!seen.present) continue;
    seen.node = node;
    monitor_.count(*node, seen.assessment);
    if (seen.assessment.silent || seen.assessment.posted) continue;
    const Instant deadline = now.mono + options_.monitor.health.node_startup_grace_period - seen.assessment.silence;
    first_deadline_ = std::min(first_deadline_.value_or(deadline), deadline);
  }
  const NodeMonitor::Verdict verdict = monitor_.finish_pass(now);
  report_verdict(verdict);
  if (verdict.left_master_disruption) gate_.brakes().on_storm_over(now);
  if (verdict.sweep) sweep(now);
  for (const Seen& seen : std::exchange(pass_, {})) {
    if (seen.present) act(seen.node, seen.assessment, now);
  }
  metrics_.show_zones(monitor_, now.mono);
  arm_tainting(now);
  shared_.client.at(next_pass(now), [this](Now then) { begin_pass(then); });
}

/// No node keeps a taint of ours or its place in a queue.
void NodeLifecycleController::sweep(Now now) {
  for (const Seen& seen : pass_) {
    if (!seen.present) continue;
    if (carries_own_taint(*seen.node)) {
      untaint(seen.node, now);
    } else {
      monitor_.dequeue(*seen.node);
    }
  }
}

Instant NodeLifecycleController::next_pass(Now now) const {
  const Instant regular = now.mono + options_.node_monitor_period;
  if (!options_.profile.detect_at_deadline || !first_deadline_) return regular;
  // Silence counts when it is longer than the grace period.
  return std::min(regular, std::max(*first_deadline_ + milliseconds(1), now.mono + options_.pass_gap_min));
}

/// A sign of life is recorded when it arrives, or, as upstream does, when the next pass finds it.
void NodeLifecycleController::on_lease(const LeasePtr& before, const LeasePtr& after, Now now) {
  if (!started_ || !options_.profile.leases) return;
  const std::string& name = (after ? after : before)->metadata.name;
  if (!monitor_.knows(name)) return;  // its first pass is to come
  const NodePtr node = shared_.nodes.cache().find(name);
  if (after && node && options_.profile.detect_at_deadline) {
    monitor_.assess(*node, after.get(), now);
  } else {
    monitor_.touch(name);
  }
}

void NodeLifecycleController::report_verdict(const NodeMonitor::Verdict& verdict) {
  if (verdict.entered_master_disruption) shared_.log.warning("every zone is disrupted: evictions stop");
  if (verdict.left_master_disruption) shared_.log.info("nodes are back: evictions resume");
  for (const NodeMonitor::ZoneChange& change : verdict.changes) {
    shared_.log.info("zone changed", {{"zone", lifecycle::readable_zone(change.zone)},
                                      {"state", lifecycle::to_string(change.after)},
                                      {"before", change.before ? lifecycle::to_string(*change.before) : "none"},
                                      {"nodes", change.counts.size()},
                                      {"unready_nodes", change.counts.unready},
                                      {"eviction_rate", change.rate}});
  }
}

void NodeLifecycleController::act(const NodePtr& node, const Assessment& assessment, Now now) {
  const std::string& name = node->metadata.name;
  if (statuses_.busy(name)) return;
  if (assessment.write) {
    const lifecycle::Act mark{lifecycle::ActKind::kMarkNotReady, zone_of(*node), {}};
    if (gate_.ask(mark, subject_of(name), now)) return;  // the next pass looks again, and asks again
    return statuses_.write(node, assessment, now);
  }
  if (assessment.current == Readiness::kTrue) gate_.release(subject_of(name));
  decide(node, assessment, now);
  mark_pods(node, assessment, now);
}

/// Its conditions are Unknown now, or it has posted before they could be.
void NodeLifecycleController::on_status_settled(const NodePtr& node, const Assessment& assessment, Now now) {
  decide(node, assessment, now);
  mark_pods(node, assessment, now);
  arm_tainting(now);
}

std::string NodeLifecycleController::zone_of(const api::Node& node) const {
  return lifecycle::zone_key(node.metadata.labels, options_.profile.zone_labels);
}

bool NodeLifecycleController::carries_own_taint(const api::Node& node) const {
  return lifecycle::has_taint(node.spec.taints, options_.profile.not_ready_taint, api::kNoExecute) ||
         lifecycle::has_taint(node.spec.taints, options_.profile.unreachable_taint, api::kNoExecute);
}

void NodeLifecycleController::decide(const NodePtr& node, const Assessment& assessment, Now now) {
  if (is_legacy()) {
    if (monitor_.decide_eviction(*node, assessment, now) == NodeMonitor::PodEviction::kDeleteAgain) {
      evict(node, pods_by_node_.on(node->metadata.name), now);
    }
    return;
  }
  if (tainting_.contains(node->metadata.name)) return;
  const bool explains = options_.profile.explain_taints && assessment.current != Readiness::kTrue;
  const bool was_waiting = explains && find_waiting_zone(*node) != nullptr;
  switch (const TaintAction action = monitor_.decide_taint(*node, assessment, now)) {
    case TaintAction::kRemoveBoth:
      if (carries_own_taint(*node)) {
        untaint(node, now);
      } else {
        monitor_.dequeue(*node);
      }
      break;
    case TaintAction::kBecomeNotReady:
    case TaintAction::kBecomeUnreachable:
      taint(node, action, {}, now);
      break;
    case TaintAction::kNone:
      if (explains && !was_waiting) explain_waiting(*node, now);
      break;
  }
}

/// The zone in whose queue the node waits, nullptr if it does not.
const std::pair<const std::string, NodeMonitor::Zone>* NodeLifecycleController::find_waiting_zone(
    const api::Node& node) const {
  const auto zone = monitor_.zones().find(lifecycle::zone_key(node.metadata.labels, options_.profile.zone_labels));
  if (zone == monitor_.zones().end() || !zone->second.queue.knows(node.metadata.name)) return nullptr;
  return &*zone;
}

void NodeLifecycleController::explain_waiting(const api::Node& node, Now now) {
  const auto* zone = find_waiting_zone(node);
  if (zone == nullptr) return;
  const lifecycle::RateLimitedQueue& queue = zone->second.queue;
  const float rate = queue.limiter().effective_rate();
  if (queue.size() <= 1 && rate > 0) return;  // its turn is now
  const policy::Reason reason{
      rate > 0 ? policy::ReasonCode::kZoneRateLimited : policy::ReasonCode::kZoneHalted,
      {{"zone", lifecycle::readable_zone(zone->first)},
       {"state", std::string(lifecycle::to_string(zone->second.state.value_or(lifecycle::ZoneState::kInitial)))},
       {"nodes_per_second", static_cast<double>(rate)},
       {"waiting_nodes", static_cast<std::int64_t>(queue.size())}}};
  shared_.log.info("node waits to be tainted", {{"node", node.metadata.name}, {"reason", policy::render(reason)}});
  node_event(node, "WaitingForTaint",
             fmt::format("Node {} event: waits to be tainted: {}", node.metadata.name, policy::render(reason)), now);
}

void NodeLifecycleController::taint(const NodePtr& node, TaintAction action, NodeTaintWriter::Done done, Now now) {
  const std::string& name = node->metadata.name;
  const bool not_ready = action == TaintAction::kBecomeNotReady;
  const std::string_view added = not_ready ? options_.profile.not_ready_taint : options_.profile.unreachable_taint;
  const std::string_view removed = not_ready ? options_.profile.unreachable_taint : options_.profile.not_ready_taint;
  tainting_.insert(name);
  const auto edit = [this, uid = node->metadata.uid, added, removed](api::Node& seen, Now then) {
    if (seen.metadata.uid != uid || effective_readiness(seen) == Readiness::kTrue) return false;  // back meanwhile
    const std::string effect(api::kNoExecute);
    bool changed = lifecycle::erase_taint(seen.spec.taints, {std::string(removed), {}, effect, {}});
    if (!lifecycle::has_taint(seen.spec.taints, added, api::kNoExecute)) {
      seen.spec.taints.push_back({std::string(added), {}, effect, std::chrono::floor<seconds>(then.wall)});
      changed = true;
    }
    return changed;
  };
  taints_.apply(
      name, edit,
      [this, node, added, done = std::move(done)](NodeTaintWriter::Outcome outcome, Now then) {
        tainting_.erase(node->metadata.name);
        if (outcome == NodeTaintWriter::Outcome::kWritten) {
          shared_.log.info("node tainted", {{"node", node->metadata.name}, {"taint", added}});
          if (options_.profile.explain_taints) {
            node_event(*node, "TaintedNode",
                       fmt::format("Node {} event: tainted {}:NoExecute", node->metadata.name, added), then);
          }
        }
        if (done) done(outcome, then);
      },
      now);
}

/// Both taints in one write; the node leaves the queue once they are gone.
void NodeLifecycleController::untaint(const NodePtr& node, Now now) {
  if (!node) return;
  const auto edit = [uid = node->metadata.uid, profile = options_.profile](api::Node& seen, Now) {
    if (seen.metadata.uid != uid) return false;
    const std::string effect(api::kNoExecute);
    const bool one = lifecycle::erase_taint(seen.spec.taints, {std::string(profile.unreachable_taint), {}, effect, {}});
    const bool two = lifecycle::erase_taint(seen.spec.taints, {std::string(profile.not_ready_taint), {}, effect, {}});
    return one || two;
  };
  taints_.apply(
      node->metadata.name, edit,
      [this, node](NodeTaintWriter::Outcome outcome, Now then) {
        if (outcome == NodeTaintWriter::Outcome::kFailed) return;  // the next pass tries again
        monitor_.dequeue(*node);
        if (outcome != NodeTaintWriter::Outcome::kWritten) return;
        shared_.log.info("node taints removed", {{"node", node->metadata.name}});
        if (options_.profile.explain_taints) {
          node_event(*node, "UntaintedNode",
                     fmt::format("Node {} event: NoExecute taints removed", node->metadata.name), then);
        }
      },
      now);
}

void NodeLifecycleController::arm_tainting(Now now) {
  if (tainting_timer_) return;
  const bool waiting = std::ranges::any_of(monitor_.zones(), [](const auto& zone) {
    return !zone.second.queue.empty() && zone.second.queue.limiter().effective_rate() > 0;
  });
  if (!waiting) return;
  tainting_timer_ = shared_.client.at(now.mono + options_.tainting_period, [this](Now then) {
    tainting_timer_.reset();
    tainting_pass(then);
    arm_tainting(then);
  });
}

void NodeLifecycleController::tainting_pass(Now now) {
  monitor_.process_queues(now, [this, now](const std::string& zone, const lifecycle::RateLimitedQueue::Entry& entry) {
    return is_legacy() ? evict_waiting(zone, entry, now) : taint_waiting(zone, entry, now);
  });
}

/// Pods that appear on a node whose turn has come already.
void NodeLifecycleController::evict(const NodePtr& node, const std::vector<PodPtr>& pods, Now now) {
  if (!evicting_.insert(node->metadata.name).second) return;
  evictor_.evict(*node, pods, [this, name = node->metadata.name](bool, Now) { evicting_.erase(name); }, now);
}

NodeMonitor::Answer NodeLifecycleController::evict_waiting(const std::string& zone,
                                                           const lifecycle::RateLimitedQueue::Entry& entry, Now now) {
  if (evicting_.contains(entry.name)) return {};
  NodePtr node = shared_.nodes.cache().find(entry.name);
  if (!node) {  // its pods are deleted even if the node is gone
    auto gone = std::make_shared<api::Node>();
    gone->metadata.name = entry.name;
    node = std::move(gone);
  }
  const lifecycle::Act act{lifecycle::ActKind::kTaint, zone_of(*node), {}};
  if (const auto again = gate_.ask(act, subject_of(entry.name), now)) {
    return {NodeMonitor::Handled::kRetry, *again - now.mono};
  }
  evicting_.insert(entry.name);
  const auto done = [this, zone, entry](bool all, Now then) {
    evicting_.erase(entry.name);
    if (all) {
      monitor_.evicted(entry.name);
      metrics_.node_tainted(zone);
    } else {
      monitor_.requeue(zone, entry, Duration::zero(), then);
      arm_tainting(then);
    }
  };
  // Not from inside the walk over the queues: an empty node is done at once.
  shared_.client.at(now.mono, [this, node, done](Now then) {
    evictor_.evict(*node, pods_by_node_.on(node->metadata.name), done, then);
  });
  return {};
}

/// The Ready condition as this controller knows it: its own Unknown stands until the node says something new, even if
/// the cache has not seen that write yet.
std::optional<Readiness> NodeLifecycleController::effective_readiness(const api::Node& node) const {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  const std::optional<lifecycle::HealthRecord> record = monitor_.find_record(node.metadata.name);
  const bool may_lag = ready == nullptr || lifecycle::readiness_of(*ready) == Readiness::kTrue;
  if (may_lag && record && record->ready &&
      (ready == nullptr || ready->last_heartbeat_time == record->ready->heartbeat)) {
    return record->ready->status;
  }
  if (ready == nullptr) return std::nullopt;
  return lifecycle::readiness_of(*ready);
}

NodeMonitor::Answer NodeLifecycleController::taint_waiting(const std::string& zone,
                                                           const lifecycle::RateLimitedQueue::Entry& entry, Now now) {
  const NodePtr node = shared_.nodes.cache().find(entry.name);
  if (!node || tainting_.contains(entry.name)) return {};
  const std::optional<Readiness> readiness = effective_readiness(*node);
  if (!readiness) return {NodeMonitor::Handled::kRetry, milliseconds(50)};
  if (*readiness == Readiness::kTrue) return {};
  const lifecycle::Act act{lifecycle::ActKind::kTaint, zone_of(*node), {}};
  if (const auto again = gate_.ask(act, subject_of(entry.name), now)) {
    return {NodeMonitor::Handled::kRetry, *again - now.mono};
  }
  taint(
      node, lifecycle::taint_action_for(*readiness),
      [this, zone, entry](NodeTaintWriter::Outcome outcome, Now then) {
        if (outcome == NodeTaintWriter::Outcome::kFailed) {
          monitor_.requeue(zone, entry, Duration::zero(), then);
          arm_tainting(then);
        } else if (outcome == NodeTaintWriter::Outcome::kWritten) {
          metrics_.node_tainted(zone);
        }
      },
      now);
  return {};
}

void NodeLifecycleController::on_node(const NodePtr& before, const NodePtr& after, Now now) {
  if (!started_) return;
  monitor_.touch((after ? after : before)->metadata.name);
  if (after) reconcile(after, now);
}

/// What follows from the node object alone, without any limiter: NoSchedule taints, labels, and the end of the
/// NoExecute taints as soon as the node is Ready.
void NodeLifecycleController::reconcile(const NodePtr& node, Now now) {
  const bool recovered = !is_legacy() && options_.profile.untaint_on_node_event && carries_own_taint(*node) &&
                         lifecycle::readiness_of(*node) == Readiness::kTrue;
  if (recovered && !tainting_.contains(node->metadata.name)) untaint(node, now);
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
                       [this, name = node->metadata.name](const Result<api::Json>& outcome, Now) {
                         labelling_.erase(name);
                         if (!outcome) {  // the next event of the node tries again
                           shared_.log.warning("node labels were not written",
                                               {{"node", name}, {"error", outcome.error().text()}});
                         }
                       });
}

void NodeLifecycleController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!started_ || !options_.profile.pod_updates || !after || after->spec.node_name.empty()) return;
  if (before && before->spec.node_name == after->spec.node_name && before->metadata.uid == after->metadata.uid) return;
  const std::optional<lifecycle::HealthRecord> record = monitor_.find_record(after->spec.node_name);
  if (!record || !record->ready || record->ready->status == Readiness::kTrue) return;
  if (const NodePtr node = shared_.nodes.cache().find(after->spec.node_name); node && is_legacy()) {
    if (monitor_.decide_eviction_of_new_pod(*node, now) == NodeMonitor::PodEviction::kDeleteAgain) {
      evict(node, {after}, now);
    }
    arm_tainting(now);
  }
  marker_.mark(
      {after},
      [this, node = after->spec.node_name](bool all, Now) {
        if (!all) monitor_.pods_marked(node, false);
      },
      now);
}

void NodeLifecycleController::mark_pods(const NodePtr& node, const Assessment& assessment, Now now) {
  const std::string& name = node->metadata.name;
  const NodeMonitor::PodMarking marking = monitor_.decide_marking(*node, assessment);
  if (marking.node_event) {
    node_event(*node, "NodeNotReady", fmt::format("Node {} status is now: NodeNotReady", name), now);
  }
  if (!marking.mark) return;
  marker_.mark(pods_by_node_.on(name), [this, name](bool all, Now) { monitor_.pods_marked(name, all); }, now);
}

}  // namespace spillway::controllers
