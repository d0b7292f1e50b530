// The clock and the event queue of a simulated world: time moves only from one event to the next.
// Thread: one. Ordering: by instant, then in the order the events were set; hence the same run every time.
#pragma once

#include "base/time.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::sim {

class VirtualTime {
 public:
  struct EventId {
    Instant due;
    std::uint64_t number = 0;  // in the order in which events are set
    std::size_t slot = 0;

    friend auto operator<=>(const EventId&, const EventId&) = default;
  };

  /// Monotonic time starts at zero; wall time at 2026-01-01T00:00:00Z.
  Now now() const;

  /// Runs `event` at `due`, or now if that has passed.
  EventId at(Instant due, std::move_only_function<void()> event);

  EventId after(Duration delay, std::move_only_function<void()> event) { return at(now_ + delay, std::move(event)); }

  void cancel(const EventId& id);

  /// The wall clock jumps; monotonic time does not notice.
  void jump_wall(Duration by) { wall_offset_ += by; }

  /// Runs everything due up to and including `end`, then sets the time to `end`.
  void run_until(Instant end);

  /// Runs the next event, if it is due at `latest` or before; false: there is none.
  bool run_next(Instant latest);

  /// When the next event is due, or earlier, if that one was cancelled; nullopt: there is none.
  std::optional<Instant> next_due() const { return queue_.empty() ? std::nullopt : std::optional(queue_.front().due); }

  std::uint64_t events_run() const { return events_run_; }

 private:
  Instant now_{};
  Duration wall_offset_{};

  /// A function that is to run, as long as the number is that of the entry in the queue; 0: none.
  struct Slot {
    std::uint64_t number = 0;
    std::move_only_function<void()> event;
  };

  bool is_live(const EventId& id) const { return slots_[id.slot].number == id.number; }

  std::move_only_function<void()> take(const EventId& id);
  /// Drops cancelled entries once they are the majority.
  void tidy();

  std::uint64_t last_number_ = 0;
  std::uint64_t events_run_ = 0;
  std::vector<EventId> queue_;  // a heap with the next event in front; cancelled events stay until they are due
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_slots_;
};

}  // namespace spillway::sim
