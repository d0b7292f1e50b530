#include "controllers/nodes/node_tainter.h"

#include "policy/lifecycle/condition_taints.h"
#include "policy/lifecycle/zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::Assessment;
using lifecycle::NodeMonitor;
using lifecycle::Readiness;
using lifecycle::TaintAction;

}  // namespace

NodeTainter::NodeTainter(Parts parts)
    : parts_(std::move(parts)),
      beat_(parts_.shared.client, parts_.monitor, parts_.profile.remedies, parts_.tainting_period,
            [this](const std::string& zone, const QueueBeat::Entry& entry, Now now) {
              return taint_waiting(zone, entry, now);
            }) {}

void NodeTainter::on_opening(const NodeMonitor::Opening& opening, Now now) {
  if (remedies().keep_taints_of_failing) return;
  for (const api::Node* node : opening.added) {
    parts_.monitor.dequeue(*node);
    untaint(parts_.shared.nodes.cache().find(node->metadata.name), {}, now);
  }
}

void NodeTainter::on_full_disruption(bool /*entered*/, const std::vector<NodePtr>& nodes, Now now) {
  for (const NodePtr& node : nodes) free(node, now);
}

void NodeTainter::on_node(const NodePtr& node, Now now) {
  const bool recovered = remedies().untaint_on_node_event && carries_own_taint(*node) &&
                         lifecycle::readiness_of(*node) == Readiness::kTrue;
  if (recovered && !tainting_.contains(node->metadata.name)) free(node, now);
}

bool NodeTainter::carries_own_taint(const api::Node& node) const {
  return lifecycle::has_taint(node.spec.taints, facts().not_ready_taint, api::kNoExecute) ||
         lifecycle::has_taint(node.spec.taints, facts().unreachable_taint, api::kNoExecute);
}

void NodeTainter::on_assessed(const NodePtr& node, const Assessment& assessment, const Pods& /*pods*/, Now now) {
  if (tainting_.contains(node->metadata.name)) return;
  const bool explains = remedies().explain_taints && assessment.current != Readiness::kTrue;
  const bool was_waiting = explains && find_waiting_zone(*node) != nullptr;
  switch (const TaintAction action = parts_.monitor.decide_taint(*node, assessment, now)) {
    case TaintAction::kRemoveBoth:
      free(node, now);
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
const std::pair<const std::string, NodeMonitor::Zone>* NodeTainter::find_waiting_zone(const api::Node& node) const {
  const auto zone = parts_.monitor.zones().find(parts_.acts.zone_of(node));
  if (zone == parts_.monitor.zones().end() || !zone->second.queue.knows(node.metadata.name)) return nullptr;
  return &*zone;
}

void NodeTainter::explain_waiting(const api::Node& node, Now now) {
  const auto* zone = find_waiting_zone(node);
  if (zone == nullptr) return;
  const lifecycle::RateLimitedQueue& queue = zone->second.queue;
  const float rate = queue.limiter().effective_rate();
  if (queue.size() <= 1 && rate > 0) return;  // the node's turn is now
  const policy::Reason reason{
      rate > 0 ? policy::ReasonCode::kZoneRateLimited : policy::ReasonCode::kZoneHalted,
      {{"zone", lifecycle::readable_zone(zone->first)},
       {"state", std::string(lifecycle::to_string(zone->second.state.value_or(lifecycle::ZoneState::kInitial)))},
       {"nodes_per_second", static_cast<double>(rate)},
       {"waiting_nodes", static_cast<std::int64_t>(queue.size())}}};
  parts_.shared.log.info("node waits to be tainted",
                         {{"node", node.metadata.name}, {"reason", policy::render(reason)}});
  parts_.acts.record_event(
      node, "WaitingForTaint",
      fmt::format("Node {} event: waits to be tainted: {}", node.metadata.name, policy::render(reason)), now);
}

void NodeTainter::taint(const NodePtr& node, TaintAction action, NodeTaintWriter::Done done, Now now) {
  const std::string& name = node->metadata.name;
  const bool not_ready = action == TaintAction::kBecomeNotReady;
  const std::string_view added = not_ready ? facts().not_ready_taint : facts().unreachable_taint;
  const std::string_view removed = not_ready ? facts().unreachable_taint : facts().not_ready_taint;
  tainting_.insert(name);
  parts_.acts.record_decision(name, fmt::format("tainted {}", not_ready ? "not-ready" : "unreachable"), {}, now);
  const auto edit = [this, uid = node->metadata.uid, added, removed](api::Node& seen, Now then) {
    if (seen.metadata.uid != uid || effective_readiness(seen) == Readiness::kTrue) return false;  // back meanwhile
    const std::string effect(api::kNoExecute);
    bool changed = lifecycle::erase_taint(seen.spec.taints, {std::string(removed), {}, effect, {}});
    const bool has = lifecycle::has_taint(seen.spec.taints, added, api::kNoExecute);
    if (has && remedies().keep_taints_of_failing) return changed;
    const api::Taint taint{std::string(added), {}, effect, std::chrono::floor<seconds>(then.wall)};
    return lifecycle::put_taint(seen.spec.taints, taint) || changed;
  };
  parts_.writer.apply(
      name, edit,
      [this, node, added, done = std::move(done)](NodeTaintWriter::Outcome outcome, Now then) {
        tainting_.erase(node->metadata.name);
        if (outcome == NodeTaintWriter::Outcome::kWritten) {
          parts_.shared.log.info("node tainted", {{"node", node->metadata.name}, {"taint", added}});
          if (remedies().explain_taints) {
            parts_.acts.record_event(*node, "TaintedNode",
                                     fmt::format("Node {} event: tainted {}:NoExecute", node->metadata.name, added),
                                     then);
          }
        }
        if (done) done(outcome, then);
      },
      now);
}

void NodeTainter::free(const NodePtr& node, Now now) {
  if (!carries_own_taint(*node)) {
    parts_.monitor.dequeue(*node);
    return;
  }
  untaint(node, [this, node] { parts_.monitor.dequeue(*node); }, now);
}

/// Both taints in one write; upstream those that the node was seen to carry (T10).
void NodeTainter::untaint(const NodePtr& node, std::function<void()> gone, Now now) {
  if (!node) return;
  if (carries_own_taint(*node)) parts_.acts.record_decision(node->metadata.name, "untainted", {}, now);
  std::vector<std::string_view> keys;
  for (const std::string_view key : {facts().unreachable_taint, facts().not_ready_taint}) {
    const bool seen = lifecycle::has_taint(node->spec.taints, key, api::kNoExecute);
    if (seen || remedies().sweep_while_disrupted) keys.push_back(key);
  }
  const auto edit = [uid = node->metadata.uid, keys](api::Node& fresh, Now) {
    if (fresh.metadata.uid != uid) return false;
    bool changed = false;
    for (const std::string_view key : keys) {
      const api::Taint taint{std::string(key), {}, std::string(api::kNoExecute), {}};
      changed = lifecycle::erase_taint(fresh.spec.taints, taint) || changed;
    }
    return changed;
  };
  parts_.writer.apply(
      node->metadata.name, edit,
      [this, node, gone = std::move(gone)](NodeTaintWriter::Outcome outcome, Now then) {
        if (outcome == NodeTaintWriter::Outcome::kFailed) return;  // the next pass tries again
        if (gone) gone();
        if (outcome != NodeTaintWriter::Outcome::kWritten) return;
        parts_.shared.log.info("node taints removed", {{"node", node->metadata.name}});
        if (remedies().explain_taints) {
          parts_.acts.record_event(*node, "UntaintedNode",
                                   fmt::format("Node {} event: NoExecute taints removed", node->metadata.name), then);
        }
      },
      now);
}

/// The Ready condition as this controller knows it: its own Unknown stands until the node says something new, even if
/// the cache has not seen that write yet.
std::optional<Readiness> NodeTainter::effective_readiness(const api::Node& node) const {
  const api::NodeCondition* ready = api::find_condition(node.status.conditions, "Ready");
  const std::optional<lifecycle::HealthRecord> record = parts_.monitor.find_record(node.metadata.name);
  const bool may_lag = ready == nullptr || lifecycle::readiness_of(*ready) == Readiness::kTrue;
  if (may_lag && record && record->ready &&
      (ready == nullptr || ready->last_heartbeat_time == record->ready->heartbeat)) {
    return record->ready->status;
  }
  if (ready == nullptr) return std::nullopt;
  return lifecycle::readiness_of(*ready);
}

NodeMonitor::Answer NodeTainter::taint_waiting(const std::string& zone, const QueueBeat::Entry& entry, Now now) {
  const NodePtr node = parts_.shared.nodes.cache().find(entry.name);
  if (!node || tainting_.contains(entry.name)) return {};
  const std::optional<Readiness> readiness = effective_readiness(*node);
  if (!readiness) return {NodeMonitor::Handled::kRetry, milliseconds(50)};
  if (*readiness == Readiness::kTrue) return {};
  if (const auto again = parts_.acts.ask_gate(lifecycle::ActKind::kTaint, *node, now)) {
    return {NodeMonitor::Handled::kRetry, *again - now.mono};
  }
  const bool counts_first = facts().counts_before_trying;
  if (counts_first) parts_.metrics.node_tainted(zone);
  taint(
      node, lifecycle::taint_action_for(*readiness),
      [this, zone, entry, counts_first](NodeTaintWriter::Outcome outcome, Now then) {
        if (outcome == NodeTaintWriter::Outcome::kFailed) {
          beat_.retry(zone, entry, then);
        } else if (outcome == NodeTaintWriter::Outcome::kWritten && !counts_first) {
          parts_.metrics.node_tainted(zone);
        }
      },
      now);
  return {};
}

}  // namespace spillway::controllers
