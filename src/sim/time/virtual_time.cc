#include "sim/time/virtual_time.h"

#include <algorithm>

namespace spillway::sim {
namespace {

constexpr std::size_t kQueueTidied = 64;            // shorter queues are not worth it
constexpr WallTime kEpoch{seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z

/// Each entry of the heap precedes its four children: half as deep as with two, and those are adjacent in memory.
constexpr std::size_t kChildren = 4;

void rise(std::vector<VirtualTime::EventId>& heap, std::size_t at) {
  const VirtualTime::EventId moved = heap[at];
  while (at > 0) {
    const std::size_t parent = (at - 1) / kChildren;
    if (heap[parent] < moved) break;
    heap[at] = heap[parent];
    at = parent;
  }
  heap[at] = moved;
}

void sink(std::vector<VirtualTime::EventId>& heap, std::size_t at) {
  const VirtualTime::EventId moved = heap[at];
  for (std::size_t first = kChildren * at + 1; first < heap.size(); first = kChildren * at + 1) {
    const std::size_t end = std::min(first + kChildren, heap.size());
    std::size_t next = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap[child] < heap[next]) next = child;
    }
    if (moved < heap[next]) break;
    heap[at] = heap[next];
    at = next;
  }
  heap[at] = moved;
}

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
  rise(queue_, queue_.size() - 1);
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
  // destroyed last, because its captures may set or cancel other events
  const std::move_only_function<void()> cancelled = take(id);
  tidy();
}

void VirtualTime::tidy() {
  const std::size_t live = slots_.size() - free_slots_.size();
  if (queue_.size() < kQueueTidied || queue_.size() < 2 * live) return;
  std::erase_if(queue_, [this](const EventId& id) { return !is_live(id); });
  std::ranges::sort(queue_);  // a sorted list is a heap
}

bool VirtualTime::run_next(Instant latest) {
  while (!queue_.empty() && queue_.front().due <= latest) {
    const EventId next = queue_.front();
    queue_.front() = queue_.back();
    queue_.pop_back();
    if (!queue_.empty()) sink(queue_, 0);
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
