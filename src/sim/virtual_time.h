// The clock and the event queue of a simulated world: time moves only from one event to the next.
// Thread: one. Ordering: by instant, then in the order the events were set; hence the same run every time.
#pragma once

#include "base/time.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace spillway::sim {

class VirtualTime {
 public:
  using EventId = std::pair<Instant, std::uint64_t>;

  /// Monotonic time starts at zero; wall time at 2026-01-01T00:00:00Z.
  Now now() const;

  /// Runs `event` at `due`, or now if that has passed.
  EventId at(Instant due, std::move_only_function<void()> event);

  EventId after(Duration delay, std::move_only_function<void()> event) { return at(now_ + delay, std::move(event)); }

  void cancel(const EventId& id);

  /// The wall clock jumps; monotonic time does not notice.
  void jump_wall(Duration by) { wall_offset_ += by; }

  /// Runs everything due up to and including `end`, then stands at `end`.
  void run_until(Instant end);

  std::uint64_t events_run() const { return events_run_; }

 private:
  Instant now_{};
  Duration wall_offset_{};
  std::uint64_t last_id_ = 0;
  std::uint64_t events_run_ = 0;
  std::map<EventId, std::move_only_function<void()>> events_;
};

}  // namespace spillway::sim
