#include "controllers/nodes/legacy/timeout_response.h"

#include "controllers/nodes/legacy/node_eviction.h"

#include <memory>
#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::NodeMonitor;
using lifecycle::TimeoutEvictions;

}  // namespace

TimeoutResponse::TimeoutResponse(Parts parts)
    : parts_(std::move(parts)),
      evictions_(parts_.monitor, parts_.pod_eviction_timeout, parts_.profile.facts),
      beat_(parts_.shared.client, parts_.monitor, parts_.profile.remedies, parts_.tainting_period,
            [this](const std::string& zone, const QueueBeat::Entry& entry, Now now) {
              return evict_waiting(zone, entry, now);
            }) {
  if (parts_.profile.facts.checks_kubelet_version) kubelets_.emplace(parts_.shared);
}

void TimeoutResponse::on_opening(const NodeMonitor::Opening& opening, Now /*now*/) {
  evictions_.on_opening(opening);
}

void TimeoutResponse::on_assessed(const NodePtr& node, const lifecycle::Assessment& assessment, const Pods& pods,
                                  Now now) {
  const bool again = evictions_.decide_eviction(*node, assessment, now) == TimeoutEvictions::Step::kDeleteAgain;
  if (again && pods) evict(node, *pods, {}, now);
}

void TimeoutResponse::on_full_disruption(bool entered, const std::vector<NodePtr>& /*nodes*/, Now /*now*/) {
  if (entered) evictions_.cancel_all();
}

void TimeoutResponse::on_bound(const PodPtr& pod, const NodePtr& node, const Done& done, Now now) {
  const bool again = evictions_.decide_eviction_of_new_pod(*node, now) == TimeoutEvictions::Step::kDeleteAgain;
  beat_.arm(now);
  if (!again) return done(true, now);
  evict(node, {pod}, done, now);
}

void TimeoutResponse::on_pod(const PodPtr& pod) {
  if (kubelets_) kubelets_->on_pod(pod);
}

bool TimeoutResponse::marks_pods_of(const api::Node& node) const {
  return !kubelets_ || kubelets_->marks_pods_of(node);
}

/// Evicts pods of a node whose turn has come already. `done` may be empty. While an eviction of the node is under way
/// there is no second one: these pods are left to the next pass, and `done(true)` follows at once.
void TimeoutResponse::evict(const NodePtr& node, const std::vector<PodPtr>& pods, Done done, Now now) {
  if (!evicting_.try_emplace(node->metadata.name).second) {
    if (done) done(true, now);
    return;
  }
  evict_pods(
      parts_.shared, parts_.profile.facts, *node, pods,
      [this, name = node->metadata.name, done = std::move(done)](bool all, Now then) {
        on_eviction_end(name, then);
        if (done) done(all, then);
      },
      now);
}

/// Gives the node the turn that came during its eviction; a node that has recovered since has left its queue.
void TimeoutResponse::on_eviction_end(const std::string& node, Now now) {
  const auto ended = evicting_.extract(node);
  if (const std::optional<Turn>& turn = ended.mapped()) beat_.retry(turn->zone, turn->entry, now);
}

NodeMonitor::Answer TimeoutResponse::evict_waiting(const std::string& zone, const QueueBeat::Entry& entry, Now now) {
  if (const auto under_way = evicting_.find(entry.name); under_way != evicting_.end()) {
    under_way->second = Turn{zone, entry};
    return {};
  }
  NodePtr node = parts_.shared.nodes.cache().find(entry.name);
  if (!node) {  // the pods are deleted even if the node does not exist
    auto gone = std::make_shared<api::Node>();
    gone->metadata.name = entry.name;
    node = std::move(gone);
  }
  if (const auto again = parts_.acts.ask_gate(lifecycle::ActKind::kTaint, *node, now)) {
    return {NodeMonitor::Handled::kRetry, *again - now.mono};
  }
  evicting_.try_emplace(entry.name);
  parts_.acts.record_decision(entry.name, "pods evicted", {}, now);
  const bool counts_first = parts_.profile.facts.counts_before_trying;
  if (counts_first) parts_.metrics.node_tainted(zone);
  const auto done = [this, zone, entry, counts_first](bool all, Now then) {
    on_eviction_end(entry.name, then);
    if (all) {
      evictions_.evicted(entry.name);
      if (!counts_first) parts_.metrics.node_tainted(zone);
    } else {
      beat_.retry(zone, entry, then);
    }
  };
  // Called later, not from inside the loop over the queues: an empty node is finished at once.
  parts_.shared.client.at(now.mono, [this, node, done](Now then) {
    const Pods pods = parts_.pods_of(node->metadata.name);
    if (!pods) return done(false, then);
    evict_pods(parts_.shared, parts_.profile.facts, *node, *pods, done, then);
  });
  return {};
}

}  // namespace spillway::controllers
