#include "controllers/taints/taint_eviction.h"

#include "api/object/owner_text.h"
#include "base/elapsed.h"
#include "controllers/taints/taint_deletion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

namespace spillway::controllers {

namespace {

using lifecycle::TaintEvictions;

// A deletion that waits to be sent is sent even if its node recovers meanwhile; in the schedule it is cancelled. So
// only a few wait there: more than are sent until the next pass, by upstream's default rate.
constexpr std::size_t kBacklogMax = 32;
constexpr Duration kBacklogWait = seconds(1);
/// The time between two checks of a replacement's stage: short beside the time in which a pod starts.
constexpr Duration kStageWait = seconds(1);

std::string subject_of(const api::PodKey& pod) {
  return "pod/" + pod.text();
}

}  // namespace

TaintEvictionController::TaintEvictionController(Shared shared, const PodsByNode& pods_by_node,
                                                 LifecycleMetrics& metrics, ActGate& gate,
                                                 telemetry::Registry& registry, Options options)
    : shared_(shared),
      pods_by_node_(pods_by_node),
      metrics_(metrics),
      gate_(gate),
      options_(options),
      evictions_(options.profile) {
  if (options_.replace_before_deletion) order_.emplace(shared_, options_.profile.facts, registry);
  if (options_.replace_before_deletion) {
    rooms_.emplace(shared_, [this](Now now) { return order_->promised(now); });
  } else if (options_.wait_for_replacement) {
    rooms_.emplace(shared_, nullptr);
  }
  if (options_.respect_budgets) budgets_.emplace(shared_);
  shared_.nodes.cache().listen(
      {[this](const NodePtr& before, const NodePtr& after, Now now) { on_node(before, after, now); }});
  shared_.pods.cache().listen(
      {[this](const PodPtr& before, const PodPtr& after, Now now) { on_pod(before, after, now); }});
}

void TaintEvictionController::start(Now now) {
  started_ = true;
  if (order_) order_->start();
  for (const auto& [name, node] : shared_.nodes.cache().all()) {
    if (lifecycle::no_execute_taints(node->spec.taints).empty()) continue;
    if (options_.profile.remedies.keep_taints_of_failing && has_health_taint(*node)) {
      held_.insert(name);
    } else {
      evaluate_as_before(*node, now);
    }
  }
  if (!held_.empty()) {
    shared_.client.at(now.mono + options_.start_hold, [this](Now then) { release_held(then); });
  }
}

bool TaintEvictionController::has_health_taint(const api::Node& node) const {
  return std::ranges::any_of(node.spec.taints, [this](const api::Taint& taint) {
    return taint.effect == api::kNoExecute && (taint.key == options_.profile.facts.not_ready_taint ||
                                               taint.key == options_.profile.facts.unreachable_taint);
  });
}

void TaintEvictionController::release_held(Now now) {
  for (const std::string& name : std::exchange(held_, {})) {
    if (const NodePtr node = shared_.nodes.cache().find(name)) evaluate_as_before(*node, now);
  }
}

/// Pods that were on the node when this process started: their wait began when the last taint was added or, if they are
/// younger, when they were created. Both times are the API server's, and only ages are taken from them.
void TaintEvictionController::evaluate_as_before(const api::Node& node, Now now) {
  std::vector<api::Taint> taints = lifecycle::no_execute_taints(node.spec.taints);
  std::optional<WallTime> tainted;
  for (const api::Taint& taint : taints) {
    if (!taint.time_added) return evaluate_node(node, now);
    tainted = tainted ? std::max(*tainted, *taint.time_added) : *taint.time_added;
  }
  if (!tainted || !options_.profile.remedies.keep_taints_of_failing) return evaluate_node(node, now);
  carry_out(evictions_.on_node(node.metadata.name, std::move(taints), {}, now), now);
  for (const PodPtr& pod : pods_by_node_.on(node.metadata.name)) {
    const WallTime since = std::max(*tainted, pod->metadata.creation_timestamp.value_or(*tainted));
    const Duration age = std::max(elapsed(since, now.wall), Duration::zero());
    carry_out(evictions_.on_pod(*pod, now, now.mono - age), now);
  }
}

void TaintEvictionController::evaluate_node(const api::Node& node, Now now) {
  const std::vector<PodPtr> pods = pods_by_node_.on(node.metadata.name);
  std::vector<const api::Pod*> pointers;
  for (const PodPtr& pod : pods) pointers.push_back(pod.get());
  carry_out(evictions_.on_node(node.metadata.name, lifecycle::no_execute_taints(node.spec.taints), pointers, now), now);
}

void TaintEvictionController::on_node(const NodePtr& before, const NodePtr& after, Now now) {
  if (!started_) return;
  if (!after) {
    held_.erase(before->metadata.name);
    evictions_.on_node_gone(before->metadata.name);
    return;
  }
  const bool known = before && before->metadata.uid == after->metadata.uid;
  if (known && lifecycle::no_execute_taints(before->spec.taints) == lifecycle::no_execute_taints(after->spec.taints)) {
    return;
  }
  held_.erase(after->metadata.name);
  evaluate_node(*after, now);
  if (order_) order_->on_node(pods_by_node_.on(after->metadata.name));
}

void TaintEvictionController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  if (!started_) return;
  const bool replaced = before && after && before->metadata.uid != after->metadata.uid;
  if (before && (!after || replaced)) gate_.release(subject_of(before->key()));
  if (before && (!after || replaced)) roomless_.erase(before->key());
  if (before && (!after || replaced)) carry_out(evictions_.on_pod_gone(before->key()), now);
  if (!after || after->spec.node_name.empty()) return;
  const bool same = before && !replaced && before->spec.node_name == after->spec.node_name &&
                    before->spec.tolerations == after->spec.tolerations;
  if (!same) carry_out(evictions_.on_pod(*after, now), now);
}

/// Pods of the highest priority get the remaining room first.
void TaintEvictionController::sort_by_priority(std::vector<TaintEvictions::Order>& orders) const {
  std::ranges::stable_sort(orders, std::ranges::greater(), [this](const TaintEvictions::Order& order) {
    const PodPtr pod = shared_.pods.cache().find(order.pod.text());
    return pod ? api::priority_of(*pod) : std::numeric_limits<std::int32_t>::max();
  });
}

void TaintEvictionController::carry_out(std::vector<TaintEvictions::Order> orders, Now now) {
  if (order_ && orders.size() > 1) sort_by_priority(orders);
  begin_check(now);
  for (const TaintEvictions::Order& order : orders) {
    if (order.kind == TaintEvictions::OrderKind::kEvict) {
      evict(order.pod, order.reason, now);
      continue;
    }
    gate_.release(subject_of(order.pod));
    roomless_.erase(order.pod);
    const PodPtr pod = shared_.pods.cache().find(order.pod.text());
    if (!pod) continue;
    shared_.events.record(client::reference_to(*pod), client::EventType::kNormal, "TaintManagerEviction",
                          fmt::format("Cancelling deletion of Pod {}", order.pod.text()), now);
  }
  arm();
}

void TaintEvictionController::evict(const api::PodKey& key, const policy::Reason& reason, Now now) {
  const PodPtr pod = shared_.pods.cache().find(key.text());
  if (!pod) return evictions_.on_evicted(key, true, now);
  if (shared_.client.waiting() >= kBacklogMax) return evictions_.postpone(key, now.mono + kBacklogWait, now);
  if (holds(pod, now)) return;
  if (order_ && order_->is_asked(*pod)) order_->on_let_go(*pod, now);
  shared_.log.info("evicting pod",
                   {{"pod", key.text()}, {"node", pod->spec.node_name}, {"reason", policy::render(reason)}});
  shared_.events.record(client::reference_to(*pod), client::EventType::kNormal, "TaintManagerEviction",
                        fmt::format("Marking for deletion Pod {}", key.text()), now);
  remove(pod, now);
}

/// True if a missing replacement, a budget or a brake holds the deletion; it is then retried later.
bool TaintEvictionController::holds(const PodPtr& pod, Now now) {
  const bool replaced_first = order_ && order_->concerns(*pod);
  if (replaced_first && waits_for_replacement(pod, now)) return true;
  if (budgets_) {
    if (const auto obstacle = budgets_->find_obstacle(*pod)) {
      postpone(*pod, *obstacle, now);
      return true;
    }
  }
  if (rooms_ && !replaced_first && waits_for_room(*pod, now)) return true;
  const NodePtr node = shared_.nodes.cache().find(pod->spec.node_name);
  const lifecycle::Act act{
      lifecycle::ActKind::kDeletePod,
      node ? lifecycle::zone_key(node->metadata.labels, options_.profile.facts.zone_labels) : std::string(),
      api::controller_text(pod->metadata)};
  const auto again = gate_.ask(act, subject_of(pod->key()), now);
  if (again) evictions_.postpone(pod->key(), *again, now);
  return again.has_value();
}

/// Requests the replacement, unless acts are held now; after that its stage is checked every kStageWait.
bool TaintEvictionController::waits_for_replacement(const PodPtr& pod, Now now) {
  if (!order_->is_asked(*pod)) {
    const NodePtr node = shared_.nodes.cache().find(pod->spec.node_name);
    const std::string zone = node ? lifecycle::zone_key(node->metadata.labels, options_.profile.facts.zone_labels) : "";
    if (const auto held = gate_.brakes().hold_in(zone, now)) {
      postpone(*pod, *held, now);
      return true;
    }
    if (waits_for_room(*pod, now)) return true;
    order_->ask(pod, now);
  }
  const auto obstacle = order_->find_obstacle(*pod, now);
  if (obstacle) postpone_until(now.mono + kStageWait, *pod, *obstacle, now);
  return obstacle.has_value();
}

/// Begins a pass over the pods that found no room, if it is due or none waits.
void TaintEvictionController::begin_check(Now now) {
  if (next_check_at_ && now.mono < *next_check_at_ && !roomless_.empty()) return;
  check_at_ = now.mono;
  next_check_at_.reset();
}

bool TaintEvictionController::waits_for_room(const api::Pod& pod, Now now) {
  const bool checks = !order_ || check_at_ == now.mono;
  const auto known = roomless_.find(pod.key());
  if (!checks) {
    const policy::Reason behind{policy::ReasonCode::kNoReplacement, {{"replacement", "behind-others"}}};
    postpone_until(*next_check_at_, pod, known == roomless_.end() ? behind : known->second, now);
    return true;
  }
  const auto obstacle = rooms_->find_obstacle(pod, now);
  if (!obstacle) {
    roomless_.erase(pod.key());
    return false;
  }
  if (known == roomless_.end()) {
    shared_.events.record(client::reference_to(pod), client::EventType::kWarning, "NoReplacement",
                          fmt::format("Not deleted: another pod in its place would find no node: {}",
                                      policy::text_fact(*obstacle, "message").value_or("")),
                          now);
  }
  if (!next_check_at_) next_check_at_ = now.mono + options_.obstacle_wait;
  roomless_.insert_or_assign(pod.key(), *obstacle);
  postpone_until(*next_check_at_, pod, *obstacle, now);
  return true;
}

void TaintEvictionController::postpone(const api::Pod& pod, const policy::Reason& reason, Now now) {
  postpone_until(now.mono + options_.obstacle_wait, pod, reason, now);
}

void TaintEvictionController::postpone_until(Instant again, const api::Pod& pod, const policy::Reason& reason,
                                             Now now) {
  gate_.hold(lifecycle::ActKind::kDeletePod, subject_of(pod.key()), reason, again, now);
  evictions_.postpone(pod.key(), again, now);
  arm();
}

void TaintEvictionController::remove(const PodPtr& pod, Now now) {
  const TaintDeletion::Options options{.respects_budgets = options_.respect_budgets,
                                       .sets_condition = options_.profile.facts.disruption_target_condition,
                                       .attempts_max = options_.attempts_max,
                                       .attempt_wait = options_.attempt_wait};
  const auto done = [this, ordered = now.mono](const PodPtr& removed, TaintDeletionEnd end,
                                               const std::optional<Error>& error,
                                               Now then) { on_removed(*removed, ordered, end, error, then); };
  std::make_shared<TaintDeletion>(shared_, options, pod, done)->advance(now);
}

void TaintEvictionController::on_removed(const api::Pod& pod, Instant ordered, TaintDeletionEnd end,
                                         const std::optional<Error>& error, Now now) {
  using End = TaintDeletionEnd;
  switch (end) {
    case End::kRefused:
      return postpone(pod, {policy::ReasonCode::kBudgetRefuses, {{"message", error->message}}}, now);
    case End::kGoneBefore:
      return evictions_.on_evicted(pod.key(), true, now);
    case End::kFailed:
      shared_.log.warning("pod was not evicted", {{"pod", pod.key().text()}, {"error", error->text()}});
      evictions_.on_evicted(pod.key(), false, now);
      return arm();
    case End::kDeleted:
      metrics_.pod_deletions.add();
      break;
    case End::kGone:
      break;
  }
  metrics_.pod_deletion_seconds.observe(std::chrono::duration<double>(now.mono - ordered).count());
  gate_.release(subject_of(pod.key()));
  evictions_.on_evicted(pod.key(), true, now);
  arm();
}

void TaintEvictionController::arm() {
  metrics_.eviction_timers.set(static_cast<double>(evictions_.schedule().all().size()));
  const std::optional<Instant> due = evictions_.next_due();
  wake_up_.set(shared_.client, due, [this](Now now) { carry_out(evictions_.take_due(now), now); });
}

}  // namespace spillway::controllers
