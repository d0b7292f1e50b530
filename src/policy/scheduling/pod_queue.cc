#include "policy/scheduling/pod_queue.h"

#include <algorithm>

namespace spillway::scheduling {

namespace {

// Names of queues and of the events that fill them, as kube-scheduler has them.
constexpr std::string_view kAdded = "UnschedulablePodAdd";
constexpr std::string_view kBackoffOver = "BackoffComplete";
constexpr std::string_view kTriedInVain = "ScheduleAttemptFailure";
constexpr std::string_view kRefusedForLong = "UnschedulableTimeout";

}  // namespace

Duration backoff_after(std::int64_t attempts, const Backoff& backoff) {
  if (attempts <= 0) return Duration::zero();
  Duration wait = backoff.initial;
  for (std::int64_t attempt = 1; attempt < attempts; ++attempt) {
    if (wait > backoff.max - wait) return backoff.max;
    wait += wait;
  }
  return std::min(wait, backoff.max);
}

void PodQueue::exit_state(const Waiting& pod) {
  if (pod.state == State::kActive) active_.erase(pod.turn);
  if (pod.state == State::kBackingOff) backing_off_.erase({pod.until, pod.turn.key});
  if (pod.state == State::kRefused) refused_.erase({pod.turn.entered, pod.turn.key});
}

void PodQueue::set_state(Waiting& pod, State state, std::string_view event) {
  exit_state(pod);
  pod.state = state;
  if (state == State::kActive) active_.insert(pod.turn);
  if (state == State::kBackingOff) backing_off_.insert({pod.until, pod.turn.key});
  if (state == State::kRefused) refused_.insert({pod.turn.entered, pod.turn.key});
  if (state == State::kActive) ++incoming_[{"active", event}];
  if (state == State::kBackingOff) ++incoming_[{"backoff", event}];
  if (state == State::kRefused) ++incoming_[{"unschedulable", event}];
}

void PodQueue::count_refusals(Waiting& pod, FilterSet by) {
  for (const Filter filter : kFilters) {
    const std::pair counted(pod.scheduler, filter);
    if (by.contains(filter) && !pod.refused_by.contains(filter)) ++refusals_[counted];
    if (!by.contains(filter) && pod.refused_by.contains(filter) && --refusals_[counted] == 0) refusals_.erase(counted);
  }
  pod.refused_by = by;
}

void PodQueue::enter(const api::Pod& pod, Instant now) {
  const std::string key = pod.key().text();
  if (const auto known = pods_.find(key); known != pods_.end()) {
    if (known->second.uid == pod.metadata.uid) return;
    erase(key);
  }
  Waiting& fresh = pods_[key];
  fresh.turn = {api::priority_of(pod), now, pod.metadata.creation_timestamp.value_or(WallTime()), key};
  fresh.uid = pod.metadata.uid;
  fresh.scheduler = pod.spec.scheduler_name;
  fresh.course.waits_since = now;
  set_state(fresh, State::kActive, kAdded);
}

void PodQueue::release(Instant now) {
  while (!backing_off_.empty() && backing_off_.begin()->first <= now) {
    set_state(pods_.at(backing_off_.begin()->second), State::kActive, kBackoffOver);
  }
}

std::optional<std::string> PodQueue::pop(Instant now) {
  release(now);
  if (active_.empty()) return std::nullopt;
  Waiting& next = pods_.at(active_.begin()->key);
  ++next.course.attempts;
  next.course.tried_since = now;
  next.woken = false;
  count_refusals(next, {});
  set_state(next, State::kTried, {});
  return next.turn.key;
}

void PodQueue::refuse(const std::string& key, Instant now, FilterSet by) {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return;
  const bool woken = pod->second.state == State::kTried && pod->second.woken;
  exit_state(pod->second);
  pod->second.state = State::kTried;  // the pod is in no list while its key changes
  pod->second.turn.entered = now;
  pod->second.until = now + backoff_after(pod->second.course.attempts, backoff_);
  count_refusals(pod->second, by);
  set_state(pod->second, woken ? State::kBackingOff : State::kRefused, kTriedInVain);
}

void PodQueue::fail(const std::string& key, Instant now) {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return;
  exit_state(pod->second);
  pod->second.state = State::kTried;  // as if tried and woken: refuse() then only applies the back-off
  pod->second.woken = true;
  refuse(key, now);
}

bool PodQueue::wake(const std::string& key, std::string_view event) {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return false;
  if (pod->second.state == State::kTried) pod->second.woken = true;
  if (pod->second.state != State::kRefused) return false;
  set_state(pod->second, State::kBackingOff, event);
  return true;
}

std::vector<std::string> PodQueue::wake_refused_until(Instant then) {
  std::vector<std::string> woken;
  while (!refused_.empty() && refused_.begin()->first <= then) {
    woken.push_back(refused_.begin()->second);
    wake(woken.back(), kRefusedForLong);
  }
  return woken;
}

void PodQueue::erase(const std::string& key) {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return;
  count_refusals(pod->second, {});
  exit_state(pod->second);
  pods_.erase(pod);
}

std::optional<PodQueue::Sight> PodQueue::find(const std::string& key) const {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return std::nullopt;
  return Sight{pod->second.state, pod->second.course, pod->second.until, pod->second.refused_by};
}

std::vector<std::string> PodQueue::keys() const {
  std::vector<std::string> keys;
  keys.reserve(pods_.size());
  for (const auto& [key, pod] : pods_) keys.push_back(key);
  return keys;
}

std::optional<PodQueue::Course> PodQueue::course_of(const std::string& key) const {
  const auto pod = pods_.find(key);
  return pod == pods_.end() || pod->second.course.attempts == 0 ? std::nullopt : std::optional(pod->second.course);
}

std::optional<Instant> PodQueue::next_due() const {
  return backing_off_.empty() ? std::nullopt : std::optional(backing_off_.begin()->first);
}

}  // namespace spillway::scheduling
