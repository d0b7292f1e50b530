#include "sim/time/virtual_time.h"

#include <algorithm>
#include <functional>

namespace spillway::sim {
namespace {

constexpr std::size_t kQueueTidied = 64;            // shorter queues are not worth it
constexpr WallTime kEpoch{seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z

}  // namespace

Now VirtualTime::now() const {
  return {now_, kEpoch + std::chrono::duration_cast<microseconds>(now_.time_since_epoch() + wall_offset_)};
}

VirtualTime::EventId VirtualTime::at(Instant due, std::move_only_function<void()> event) {
  if (free_slots_.empty()) {
    free_slots_.push_back(slots_.size());
    slots_.emplace_back();
  }
  const EventId id{std::max(due, now_), ++last_number_, free_slots_.back()};
  free_slots_.pop_back();
  slots_[id.slot] = {id.number, std::move(event)};
  queue_.push_back(id);
  std::ranges::push_heap(queue_, std::greater());
  return id;
}

std::move_only_function<void()> VirtualTime::take(const EventId& id) {
  Slot& slot = slots_[id.slot];
  slot.number = 0;
  free_slots_.push_back(id.slot);
  return std::exchange(slot.event, nullptr);
}

void VirtualTime::cancel(const EventId& id) {
  if (!is_live(id)) return;
  const std::move_only_function<void()> cancelled = take(id);  // what it holds goes last: it may set or cancel others
  tidy();
}

void VirtualTime::tidy() {
  const std::size_t live = slots_.size() - free_slots_.size();
  if (queue_.size() < kQueueTidied || queue_.size() < 2 * live) return;
  std::erase_if(queue_, [this](const EventId& id) { return !is_live(id); });
  std::ranges::make_heap(queue_, std::greater());
}

bool VirtualTime::run_next(Instant latest) {
  while (!queue_.empty() && queue_.front().due <= latest) {
    std::ranges::pop_heap(queue_, std::greater());
    const EventId next = queue_.back();
    queue_.pop_back();
    if (!is_live(next)) continue;
    now_ = next.due;
    ++events_run_;
    take(next)();
    return true;
  }
  return false;
}

void VirtualTime::run_until(Instant end) {
  while (run_next(end)) {
  }
  now_ = std::max(now_, end);
}

}  // namespace spillway::sim
