#include "policy/lifecycle/taint_eviction.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::lifecycle {
namespace {

constexpr Duration kRetryMin = seconds(1);
constexpr Duration kRetryMax = minutes(1);

policy::Reason expired(Duration waited) {
  return {policy::ReasonCode::kTolerationExpired,
          {{"waited_ms", std::chrono::duration_cast<milliseconds>(waited).count()}}};
}

}  // namespace

Toleration tolerated_for(std::span<const api::Taint> taints, std::span<const api::Toleration> tolerations) {
  Toleration result;
  for (const api::Taint& taint : taints) {
    const auto used = std::ranges::find_if(tolerations, [&](const auto& each) { return api::tolerates(each, taint); });
    if (used == tolerations.end()) return {Toleration::Kind::kNone, {}, &taint};
    if (!used->toleration_seconds) continue;
    constexpr std::int64_t kSecondsMax = 100LL * 365 * 24 * 3600;  // keeps nanoseconds in range
    const Duration wait = seconds(std::clamp<std::int64_t>(*used->toleration_seconds, 0, kSecondsMax));
    if (result.kind == Toleration::Kind::kForever || wait < result.wait)
      result = {Toleration::Kind::kFor, wait, nullptr};
  }
  return result;
}

std::vector<api::Taint> no_execute_taints(std::span<const api::Taint> taints) {
  std::vector<api::Taint> result;
  std::ranges::copy_if(taints, std::back_inserter(result),
                       [](const api::Taint& taint) { return taint.effect == api::kNoExecute; });
  return result;
}

/// Gives up a timer, if one is armed, and forgets that the pod was dealt with.
void TaintEvictions::cancel(const api::PodKey& pod, std::vector<Order>& orders) {
  attempts_.erase(pod);
  if (schedule_.cancel(pod)) orders.push_back({OrderKind::kCancelled, pod, {}});
}

void TaintEvictions::arm(const api::PodKey& pod, Instant created, Instant due, Now now, std::vector<Order>& at_once) {
  if (attempts_.contains(pod)) return;  // ordered already
  if (due > now.mono) {
    schedule_.schedule(pod, {created, due});
    return;
  }
  schedule_.cancel(pod);
  attempts_.emplace(pod, Attempt{});
  at_once.push_back({OrderKind::kEvict, pod, expired(now.mono - created)});
}

void TaintEvictions::evaluate(const api::Pod& pod, std::span<const api::Taint> taints, Now now,
                              std::optional<Instant> since, std::vector<Order>& orders, std::vector<Order>& at_once) {
  const api::PodKey key = pod.key();
  const Toleration tolerated = tolerated_for(taints, pod.spec.tolerations);
  if (tolerated.kind == Toleration::Kind::kNone) {
    cancel(key, orders);
    attempts_.emplace(key, Attempt{});
    at_once.push_back({OrderKind::kEvict,
                       key,
                       {policy::ReasonCode::kNotTolerated,
                        {{"taint", tolerated.untolerated->key}, {"value", tolerated.untolerated->value}}}});
    return;
  }
  if (tolerated.kind == Toleration::Kind::kForever) {
    if (profile_.facts.forever_toleration_cancels_timer) cancel(key, orders);
    return;
  }
  const EvictionSchedule::Timer* armed = schedule_.find(key);
  if (profile_.remedies.timers_follow_tolerations) {
    const Instant created = armed != nullptr ? armed->created : std::min(since.value_or(now.mono), now.mono);
    return arm(key, created, created + tolerated.wait, now, at_once);
  }
  // A running timer is not changed; only an evaluation at the instant of its creation replaces it.
  if (armed != nullptr) {
    if (armed->created < now.mono) return;
    cancel(key, orders);
  }
  arm(key, now.mono, now.mono + tolerated.wait, now, at_once);
}

std::vector<TaintEvictions::Order> TaintEvictions::on_node(std::string_view node, std::vector<api::Taint> taints,
                                                           std::span<const api::Pod* const> pods, Now now,
                                                           std::optional<Instant> since) {
  std::vector<Order> orders;
  if (taints.empty()) {
    on_node_gone(node);
    for (const api::Pod* pod : pods) cancel(pod->key(), orders);
    return orders;
  }
  const auto& kept = taints_.insert_or_assign(std::string(node), std::move(taints)).first->second;
  std::vector<Order> at_once;
  for (const api::Pod* pod : pods) evaluate(*pod, kept, now, since, orders, at_once);
  std::ranges::move(at_once, std::back_inserter(orders));
  return orders;
}

void TaintEvictions::on_node_gone(std::string_view node) {
  if (const auto it = taints_.find(node); it != taints_.end()) taints_.erase(it);
}

std::vector<TaintEvictions::Order> TaintEvictions::on_pod(const api::Pod& pod, Now now, std::optional<Instant> since) {
  std::vector<Order> orders;
  const auto taints = taints_.find(pod.spec.node_name);
  if (taints == taints_.end()) return orders;
  std::vector<Order> at_once;
  evaluate(pod, taints->second, now, since, orders, at_once);
  std::ranges::move(at_once, std::back_inserter(orders));
  return orders;
}

std::vector<TaintEvictions::Order> TaintEvictions::on_pod_gone(const api::PodKey& pod) {
  std::vector<Order> orders;
  cancel(pod, orders);
  return orders;
}

std::vector<TaintEvictions::Order> TaintEvictions::take_due(Now now) {
  std::vector<Order> orders;
  for (EvictionSchedule::Due& due : schedule_.take_due(now.mono)) {
    attempts_[due.pod];
    orders.push_back({OrderKind::kEvict, std::move(due.pod), expired(now.mono - due.created)});
  }
  return orders;
}

void TaintEvictions::on_evicted(const api::PodKey& pod, bool deleted, Now now) {
  const auto it = attempts_.find(pod);
  if (it == attempts_.end()) return;  // cancelled meanwhile
  if (deleted) return;
  if (!profile_.remedies.retry_failed_deletions) {
    attempts_.erase(it);
    return;
  }
  const int doublings = std::min(it->second.failures++, 10);
  schedule_.schedule(pod, {now.mono, now.mono + std::min(kRetryMin * (1 << doublings), kRetryMax)});
}

void TaintEvictions::postpone(const api::PodKey& pod, Instant due, Now now) {
  if (attempts_.contains(pod)) schedule_.schedule(pod, {now.mono, due});
}

}  // namespace spillway::lifecycle
