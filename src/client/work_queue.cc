#include "client/work_queue.h"

#include "base/check.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace spillway::client {

void WorkQueue::add(std::string_view name, Instant due) {
  if (const auto active = active_.find(name); active != active_.end()) {
    if (!active->second || due < *active->second) active->second = due;
    return;
  }
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) {
    if (it->second.first <= due) return;
    order_.erase(it->second);
    by_name_.erase(it);
  } else {
    ++adds_;
  }
  const Position position{due, ++arrivals_};
  by_name_.emplace(std::string(name), position);
  order_.emplace(position, std::string(name));
}

bool WorkQueue::retry(std::string_view name, Instant now) {
  auto it = failures_.find(name);
  if (it == failures_.end()) it = failures_.emplace(std::string(name), 0).first;
  if (limits_.retries_max > 0 && it->second >= limits_.retries_max) {
    failures_.erase(it);
    return false;
  }
  Duration wait = limits_.retry_min;
  for (int i = 0; i < it->second && wait < limits_.retry_max; ++i) wait *= 2;
  ++it->second;
  ++retries_;
  add(name, now + std::min(wait, limits_.retry_max));
  return true;
}

void WorkQueue::forget(std::string_view name) {
  if (const auto it = failures_.find(name); it != failures_.end()) failures_.erase(it);
}

void WorkQueue::remove(std::string_view name) {
  forget(name);
  if (const auto active = active_.find(name); active != active_.end()) active->second.reset();
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  order_.erase(it->second);
  by_name_.erase(it);
}

std::optional<std::string> WorkQueue::take(Instant now) {
  if (order_.empty() || order_.begin()->first.first > now) return std::nullopt;
  std::string name = std::move(order_.begin()->second);
  order_.erase(order_.begin());
  by_name_.erase(name);
  active_.emplace(name, std::nullopt);
  return name;
}

void WorkQueue::done(std::string_view name) {
  const auto it = active_.find(name);
  SPILLWAY_CHECK(it != active_.end());
  const std::optional<Instant> due = it->second;
  active_.erase(it);
  if (due) add(name, *due);
}

std::optional<Instant> WorkQueue::next_due() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first.first;
}

std::size_t WorkQueue::count_due(Instant now) const {
  return static_cast<std::size_t>(std::distance(order_.begin(), order_.upper_bound({now, UINT64_MAX})));
}

int WorkQueue::failures(std::string_view name) const {
  const auto it = failures_.find(name);
  return it == failures_.end() ? 0 : it->second;
}

}  // namespace spillway::client
