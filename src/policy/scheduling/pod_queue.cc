#include "policy/scheduling/pod_queue.h"

#include <algorithm>

namespace spillway::scheduling {

Duration backoff_after(std::int64_t attempts, const Backoff& backoff) {
  if (attempts <= 0) return Duration::zero();
  Duration wait = backoff.initial;
  for (std::int64_t attempt = 1; attempt < attempts; ++attempt) {
    if (wait > backoff.max - wait) return backoff.max;
    wait += wait;
  }
  return std::min(wait, backoff.max);
}

void PodQueue::leave_state(const Waiting& pod) {
  if (pod.state == State::kActive) active_.erase(pod.turn);
  if (pod.state == State::kBackingOff) backing_off_.erase({pod.until, pod.turn.key});
  if (pod.state == State::kRefused) --refused_;
}

void PodQueue::set_state(Waiting& pod, State state) {
  leave_state(pod);
  pod.state = state;
  if (state == State::kActive) active_.insert(pod.turn);
  if (state == State::kBackingOff) backing_off_.insert({pod.until, pod.turn.key});
  if (state == State::kRefused) ++refused_;
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
  fresh.course.waits_since = now;
  active_.insert(fresh.turn);
}

void PodQueue::release(Instant now) {
  while (!backing_off_.empty() && backing_off_.begin()->first <= now) {
    set_state(pods_.at(backing_off_.begin()->second), State::kActive);
  }
}

std::optional<std::string> PodQueue::pop(Instant now) {
  release(now);
  if (active_.empty()) return std::nullopt;
  Waiting& next = pods_.at(active_.begin()->key);
  ++next.course.attempts;
  next.course.tried_since = now;
  set_state(next, State::kTried);
  return next.turn.key;
}

void PodQueue::refuse(const std::string& key, Instant now) {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return;
  leave_state(pod->second);
  pod->second.state = State::kRefused;
  ++refused_;
  pod->second.turn.entered = now;
  pod->second.until = now + backoff_after(pod->second.course.attempts, backoff_);
}

void PodQueue::fail(const std::string& key, Instant now) {
  refuse(key, now);
  wake(key);
}

void PodQueue::wake(const std::string& key) {
  const auto pod = pods_.find(key);
  if (pod != pods_.end() && pod->second.state == State::kRefused) set_state(pod->second, State::kBackingOff);
}

void PodQueue::erase(const std::string& key) {
  const auto pod = pods_.find(key);
  if (pod == pods_.end()) return;
  leave_state(pod->second);
  pods_.erase(pod);
}

std::optional<PodQueue::Course> PodQueue::course_of(const std::string& key) const {
  const auto pod = pods_.find(key);
  return pod == pods_.end() || pod->second.course.attempts == 0 ? std::nullopt : std::optional(pod->second.course);
}

std::optional<Instant> PodQueue::next_due() const {
  return backing_off_.empty() ? std::nullopt : std::optional(backing_off_.begin()->first);
}

}  // namespace spillway::scheduling
