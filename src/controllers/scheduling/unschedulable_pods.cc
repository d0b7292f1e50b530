#include "controllers/scheduling/unschedulable_pods.h"

#include "api/object/pod_volumes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::controllers {

namespace {

/// In the name of all plug-ins whose verdict this scheduler knows the reasons of.
scheduling::FilterSet all_plugins() {
  scheduling::FilterSet all;
  for (const scheduling::Filter filter : scheduling::kFilters) {
    if (filter != scheduling::Filter::kExtender) all.insert(filter);
  }
  return all;
}

}  // namespace

UnschedulablePods::UnschedulablePods(Parts parts, Duration retry_after,
                                     std::function<std::vector<client::ObjectKey>()> being_tried)
    : parts_(parts), retry_after_(retry_after), being_tried_(std::move(being_tried)) {}

void UnschedulablePods::forget(const client::ObjectKey& key) {
  messages_.erase(key);
  claimants_.erase(key);
  related_.erase(key);
  asking_.erase(key);
}

const scheduling::PendingPod& UnschedulablePods::pending_of(const client::ObjectKey& key, const PodPtr& pod) {
  Asking& known = asking_[key];
  if (known.pod != pod) known = {pod, scheduling::make_pending(*pod, parts_.placer.profile_of(*pod))};
  return known.pending;
}

scheduling::HintWatch UnschedulablePods::hint_timing(const scheduling::ClusterChange& change) {
  if (!parts_.timings.measures() || !parts_.timings.next_hints_are_sampled()) return {};
  return [this, event = change.label(), last = parts_.timings.read()](scheduling::Filter plugin, bool queues) mutable {
    const std::optional<Instant> now = parts_.timings.read();
    if (now && last) parts_.timings.record_hint(plugin, event, queues, *now - *last);
    last = parts_.timings.read();  // the time of recording does not count for the next hint
  };
}

bool UnschedulablePods::may_let_in(const client::ObjectKey& key, scheduling::FilterSet refused_by,
                                   const scheduling::ClusterChange& change) {
  const PodPtr pod = parts_.pods.cache().find(key);
  if (!pod) return false;
  const scheduling::RefusedPod refused{pending_of(key, pod), refused_by};
  const auto hint = scheduling::hint_for(refused, change, parts_.placer.surroundings(), hint_timing(change));
  if (hint.queue && parts_.log.enabled(telemetry::Level::kDebug)) {
    parts_.log.debug("a change may make a pod schedulable",
                     {{"pod", key},
                      {"change", change.label()},
                      {"why", scheduling::to_string(hint.why)},
                      {"plugin", hint.by ? scheduling::to_string(*hint.by) : "none"}});
  }
  return hint.queue;
}

void UnschedulablePods::requeue(const scheduling::ClusterChange& change) {
  using State = scheduling::PodQueue::State;
  const auto ask = [&](const client::ObjectKey& key) {
    const auto waiting = parts_.queue.find(key);
    if (!waiting || (waiting->state != State::kRefused && waiting->state != State::kTried)) return;
    // A pod that is being tried may be refused by any plug-in, as its result is not known yet.
    const auto by = waiting->state == State::kTried ? all_plugins() : waiting->refused_by;
    if (may_let_in(key, by, change)) parts_.queue.wake(key, change.label());
  };
  for (const client::ObjectKey& key : being_tried_()) ask(key);
  if (change.kind() == scheduling::ClusterChange::Kind::kPodAdd) {
    for (const client::ObjectKey& key : related_) ask(key);  // one more pod helps only pods with terms for it
  } else {
    for (const auto& [key, message] : messages_) ask(key);
  }
}

void UnschedulablePods::requeue_all(std::string_view event) {
  for (const auto& [key, message] : messages_) parts_.queue.wake(key, event);
}

void UnschedulablePods::arm_retry() {
  const auto since = parts_.queue.refused_since();
  if (retry_armed_ || !since) return;
  retry_armed_ = true;
  parts_.client.at(*since + retry_after_, [this](Now now) {
    retry_armed_ = false;
    parts_.queue.wake_refused_until(now.mono - retry_after_);
    arm_retry();
  });
}

const std::string* UnschedulablePods::find_message(const client::ObjectKey& key) const {
  const auto found = messages_.find(key);
  return found != messages_.end() ? &found->second : nullptr;
}

void UnschedulablePods::requeue_claimants(std::string_view event) {
  for (const client::ObjectKey& key : claimants_) parts_.queue.wake(key, event);
}

void UnschedulablePods::requeue_claimants_of(const client::ObjectKey& claim, std::string_view event) {
  for (const client::ObjectKey& key : claimants_) {
    const PodPtr pod = parts_.pods.cache().find(key);
    if (!pod || !claim.starts_with(pod->metadata.ns + "/")) continue;
    const std::vector<std::string> names = api::claims_of(*pod);
    if (std::ranges::find(names, claim.substr(pod->metadata.ns.size() + 1)) != names.end()) {
      parts_.queue.wake(key, event);
    }
  }
}

}  // namespace spillway::controllers
