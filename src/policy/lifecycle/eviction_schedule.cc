#include "policy/lifecycle/eviction_schedule.h"

#include "base/check.h"

namespace spillway::lifecycle {

void EvictionSchedule::schedule(const api::PodKey& pod, Timer timer) {
  cancel(pod);
  timer_by_pod_.emplace(pod, timer);
  order_.emplace(timer.due, pod);
}

bool EvictionSchedule::cancel(const api::PodKey& pod) {
  const auto it = timer_by_pod_.find(pod);
  if (it == timer_by_pod_.end()) return false;
  order_.erase({it->second.due, pod});
  timer_by_pod_.erase(it);
  SPILLWAY_DCHECK(order_.size() == timer_by_pod_.size());
  return true;
}

const EvictionSchedule::Timer* EvictionSchedule::find(const api::PodKey& pod) const {
  const auto it = timer_by_pod_.find(pod);
  return it == timer_by_pod_.end() ? nullptr : &it->second;
}

std::optional<Instant> EvictionSchedule::next_due() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

std::vector<EvictionSchedule::Due> EvictionSchedule::take_due(Instant now) {
  std::vector<Due> due;
  while (!order_.empty() && order_.begin()->first <= now) {
    const api::PodKey pod = order_.begin()->second;
    due.push_back({pod, timer_by_pod_.at(pod).created});
    cancel(pod);
  }
  return due;
}

}  // namespace spillway::lifecycle
