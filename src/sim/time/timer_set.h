// Timers on virtual time that end with their owner: none of them runs once this is destroyed.
// Thread: one.
#pragma once

#include "base/time.h"
#include "sim/time/virtual_time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace spillway::sim {

class TimerSet {
 public:
  explicit TimerSet(VirtualTime& time) : time_(time) {}

  ~TimerSet() {
    for (const auto& [number, id] : pending_) time_.cancel(id);
  }

  TimerSet(const TimerSet&) = delete;
  TimerSet& operator=(const TimerSet&) = delete;

  /// Runs `event` at `due`, or now if that has passed. It may destroy this set.
  void at(Instant due, std::move_only_function<void()> event) {
    const std::uint64_t number = ++last_;
    pending_.emplace(number, time_.at(due, [this, number, event = std::move(event)]() mutable {
      pending_.erase(number);
      event();
    }));
  }

  void after(Duration delay, std::move_only_function<void()> event) { at(time_.now().mono + delay, std::move(event)); }

 private:
  VirtualTime& time_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, VirtualTime::EventId> pending_;
};

}  // namespace spillway::sim
