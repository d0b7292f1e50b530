#include "sim/virtual_time.h"

#include <algorithm>

namespace spillway::sim {
namespace {

constexpr WallTime kEpoch{seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z

}  // namespace

Now VirtualTime::now() const {
  return {now_, kEpoch + std::chrono::duration_cast<microseconds>(now_.time_since_epoch() + wall_offset_)};
}

VirtualTime::EventId VirtualTime::at(Instant due, std::move_only_function<void()> event) {
  const EventId id{std::max(due, now_), ++last_id_};
  events_.emplace(id, std::move(event));
  return id;
}

void VirtualTime::cancel(const EventId& id) {
  events_.erase(id);
}

void VirtualTime::run_until(Instant end) {
  while (!events_.empty() && events_.begin()->first.first <= end) {
    auto next = events_.extract(events_.begin());
    now_ = next.key().first;
    ++events_run_;
    next.mapped()();
  }
  now_ = std::max(now_, end);
}

}  // namespace spillway::sim
