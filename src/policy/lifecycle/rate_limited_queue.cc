#include "policy/lifecycle/rate_limited_queue.h"

#include <algorithm>

namespace spillway::lifecycle {

bool RateLimitedQueue::add(std::string_view name, std::string_view uid, Instant now) {
  if (known_.contains(name)) return false;
  const Position position{now, ++arrivals_};
  known_.emplace(std::string(name), position);
  order_.emplace(position, Entry{std::string(name), std::string(uid), now, now});
  return true;
}

void RateLimitedQueue::requeue(std::string_view name, std::string_view uid, Instant now) {
  const auto it = known_.find(name);
  if (it == known_.end() || !it->second) {
    remove(name);
    add(name, uid, now);
    return;
  }
  auto entry = order_.extract(*it->second);
  it->second = entry.key() = Position{now, ++arrivals_};
  entry.mapped().uid = uid;
  entry.mapped().added = entry.mapped().process_at = now;
  order_.insert(std::move(entry));
}

bool RateLimitedQueue::remove(std::string_view name) {
  const auto it = known_.find(name);
  if (it == known_.end()) return false;
  if (it->second) order_.erase(*it->second);
  known_.erase(it);
  return true;
}

void RateLimitedQueue::clear() {
  known_.clear();
  order_.clear();
}

std::optional<RateLimitedQueue::Entry> RateLimitedQueue::take(Instant now) {
  if (order_.empty() || !limiter_.try_take(now)) return std::nullopt;
  const auto head = order_.begin();
  if (head->second.process_at > now) return std::nullopt;
  Entry entry = std::move(head->second);
  order_.erase(head);
  known_[entry.name] = std::nullopt;
  return entry;
}

void RateLimitedQueue::put_back(Entry entry, Duration wait, Instant now) {
  const auto it = known_.find(entry.name);
  if (it == known_.end() || it->second) return;
  entry.process_at = now + wait + nanoseconds(1);
  const Position position{entry.process_at, ++arrivals_};
  it->second = position;
  order_.emplace(position, std::move(entry));
}

std::optional<Instant> RateLimitedQueue::oldest_added() const {
  std::optional<Instant> oldest;
  for (const auto& [position, entry] : order_) oldest = oldest ? std::min(*oldest, entry.added) : entry.added;
  return oldest;
}

std::vector<const RateLimitedQueue::Entry*> RateLimitedQueue::entries() const {
  std::vector<const Entry*> all;
  all.reserve(order_.size());
  for (const auto& [position, entry] : order_) all.push_back(&entry);
  return all;
}

}  // namespace spillway::lifecycle
