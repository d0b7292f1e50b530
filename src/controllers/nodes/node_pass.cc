#include "controllers/nodes/node_pass.h"

#include "api/codec/codec.h"
#include "base/check.h"
#include "controllers/nodes/node_lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::PassOrder;
using PassStep = NodePassStep;

/// A failed write does not keep a node out of its zone's counts.
constexpr std::array kZonesFirst = {PassStep::kLeases, PassStep::kCount, PassStep::kZones, PassStep::kActs,
                                    PassStep::kEnd};
/// Upstream's order: a node's status is written before anything follows from it, and zones are evaluated last.
constexpr std::array kStatusesFirst = {PassStep::kLeases, PassStep::kStatuses, PassStep::kFollow, PassStep::kZones,
                                       PassStep::kEnd};

std::span<const PassStep> steps_in(PassOrder order) {
  return order == PassOrder::kZonesFirst ? std::span<const PassStep>(kZonesFirst) : kStatusesFirst;
}

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

std::string lease_path(const std::string& node) {
  return client::object_path("coordination.k8s.io/v1", "leases", kLeaseNamespace, node);
}

std::string lease_key(const std::string& node) {
  return fmt::format("{}/{}", kLeaseNamespace, node);
}

}  // namespace

NodePass::NodePass(NodeLifecycleController& controller)
    : StepRun(steps_in(controller.options_.profile.remedies.pass_order)), controller_(controller) {}

void NodePass::start(const std::vector<const api::Node*>& due, Now now) {
  const bool reads_leases = controller_.options_.live_lease_check && controller_.options_.profile.facts.leases;
  nodes_.reserve(due.size());
  for (const api::Node* node : due) {
    const std::string& name = node->metadata.name;
    const auto lease = controller_.shared_.leases.cache().find(lease_key(name));
    nodes_.push_back(
        {controller_.shared_.nodes.cache().find(name), controller_.monitor_.assess(*node, lease.get(), now)});
    const bool asks = nodes_.back().assessment.write && reads_leases;
    if (asks && !controller_.statuses_.busy(name)) leases_outstanding_.insert(name);
  }
  controller_.feed_brakes(now);
  if (controller_.gate_.brakes().hold(now)) leases_outstanding_.clear();  // nothing would follow from the answers
  advance(now);
}

Next NodePass::run(Step step, Now now) {
  switch (step) {
    case Step::kLeases:
      return read_leases();
    case Step::kCount:
      return count(now);
    case Step::kZones:
      return evaluate_zones(now);
    case Step::kActs:
      return act(now);
    case Step::kStatuses:
      return write_statuses(now);
    case Step::kFollow:
      return follow_statuses(now);
    case Step::kEnd:
      nodes_.clear();
      controller_.end_pass(now);
      return Next::kEnd;
  }
  return Next::kEnd;
}

NodePass::Seen& NodePass::find(const std::string& name) {
  const auto seen = std::ranges::lower_bound(
      nodes_, name, {}, [](const Seen& each) -> const std::string& { return each.node->metadata.name; });
  SPILLWAY_CHECK(seen != nodes_.end() && seen->node->metadata.name == name);
  return *seen;
}

Next NodePass::read_leases() {
  if (leases_outstanding_.empty()) return Next::kStep;
  for (const std::string& name : leases_outstanding_) {
    controller_.shared_.client.get(lease_path(name), then(&NodePass::on_lease, name));
  }
  return Next::kWait;
}

Next NodePass::on_lease(const std::string& name, const Result<api::Json>& outcome, Now now) {
  assess_by_live_lease(name, outcome, now);
  leases_outstanding_.erase(name);
  return leases_outstanding_.empty() ? Next::kStep : Next::kWait;
}

void NodePass::assess_by_live_lease(const std::string& name, const Result<api::Json>& outcome, Now now) {
  const Shared& shared = controller_.shared_;
  Seen& seen = find(name);
  if (const NodePtr node = shared.nodes.cache().find(name)) seen.node = node;
  if (!outcome && outcome.error().code == ErrorCode::kNotFound) {
    seen.assessment = controller_.monitor_.assess(*seen.node, nullptr, now);
    return;
  }
  const auto lease = outcome ? api::decode<api::Lease>(*outcome) : Result<api::Lease>(outcome.error());
  if (lease) {
    if (controller_.options_.witness != nullptr) controller_.options_.witness->on_lease(name, *lease, now);
    seen.assessment = controller_.monitor_.assess(*seen.node, &*lease, now);
    if (!seen.assessment.silent) {
      shared.log.warning("node is alive although its lease in the cache is old", {{"node", name}});
    }
    return;
  }
  // The API server cannot be reached, so the node is not the cause. It counts by its recorded state.
  shared.log.warning("lease could not be checked", {{"node", name}, {"error", lease.error().text()}});
  seen.assessment.write.reset();
  seen.assessment.current = lifecycle::readiness_of(*seen.node);
}

/// Finds the next deadline as well: of the nodes that are not silent, that of the first to be.
Next NodePass::count(Now now) {
  lifecycle::NodeMonitor& monitor = controller_.monitor_;
  std::optional<Instant>& first_deadline = controller_.first_deadline_;
  first_deadline = monitor.first_deadline(now.mono);
  for (Seen& seen : nodes_) {
    const NodePtr node = controller_.shared_.nodes.cache().find(seen.node->metadata.name);
    seen.present = node && node->metadata.uid == seen.node->metadata.uid;
    if (!seen.present) continue;
    if (node != seen.node) assess_anew(seen, node, now);
    monitor.count(*node, seen.assessment);
    if (seen.assessment.silent || seen.assessment.posted) continue;
    const Duration grace = controller_.options_.monitor.health.node_startup_grace_period;
    const Instant deadline = now.mono + grace - seen.assessment.silence;
    first_deadline = std::min(first_deadline.value_or(deadline), deadline);
  }
  return Next::kStep;
}

/// Assesses a node again that has changed while leases were read: writing the first assessment would overwrite the
/// node's newer status.
void NodePass::assess_anew(Seen& seen, const NodePtr& node, Now now) {
  const bool was_to_be_written = seen.assessment.write.has_value();
  const auto lease = controller_.shared_.leases.cache().find(lease_key(node->metadata.name));
  seen.node = node;
  seen.assessment = controller_.monitor_.assess(*node, lease.get(), now);
  if (was_to_be_written || !seen.assessment.write) return;
  seen.assessment.write.reset();  // the next pass reads its lease
  seen.assessment.current = lifecycle::readiness_of(*node);
}

Next NodePass::evaluate_zones(Now now) {
  const lifecycle::NodeMonitor::Verdict verdict = controller_.evaluate_zones(now);
  if (!verdict.sweep) return Next::kStep;
  std::vector<NodePtr> present;
  for (const Seen& seen : nodes_) {
    if (seen.present) present.push_back(seen.node);
  }
  controller_.response_->on_full_disruption(verdict.entered_master_disruption, present, now);
  return Next::kStep;
}

Next NodePass::act(Now now) {
  for (const Seen& seen : std::exchange(nodes_, {})) {
    if (seen.present) controller_.act(seen.node, seen.assessment, now);
  }
  return Next::kStep;
}

Next NodePass::write_statuses(Now now) {
  std::vector<const Seen*> silent;
  for (Seen& seen : nodes_) {
    if (!seen.assessment.write) continue;
    seen.held = controller_.acts_.ask_gate(lifecycle::ActKind::kMarkNotReady, *seen.node, now).has_value();
    if (seen.held) continue;
    controller_.record_marked(*seen.node, seen.assessment, now);
    silent.push_back(&seen);
    statuses_outstanding_.insert(seen.node->metadata.name);
  }
  for (const Seen* seen : silent) controller_.statuses_.write(seen->node, seen->assessment, now);
  return silent.empty() ? Next::kStep : Next::kWait;
}

bool NodePass::on_status_settled(const NodePtr& node, const lifecycle::Assessment& assessment, Now now) {
  if (statuses_outstanding_.erase(node->metadata.name) == 0) return false;
  Seen& seen = find(node->metadata.name);
  seen.node = node;
  seen.assessment = assessment;
  if (statuses_outstanding_.empty()) advance(now);
  return true;
}

void NodePass::on_status_abandoned(const std::string& name, Now now) {
  if (statuses_outstanding_.erase(name) == 0) return;
  find(name).present = false;
  if (statuses_outstanding_.empty()) advance(now);
}

Next NodePass::follow_statuses(Now now) {
  for (const Seen& seen : nodes_) {
    if (!seen.present) continue;  // a node whose status could not be written does not count in this pass
    controller_.monitor_.count(*seen.node, seen.assessment);
    if (!seen.held) controller_.follow_status(seen.node, seen.assessment, now);
  }
  return Next::kStep;
}

}  // namespace spillway::controllers
