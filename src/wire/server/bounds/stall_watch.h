// Checks that a client takes its waiting bytes: so many bytes in so much time. No I/O; time is an argument.
// Thread: one at a time. Bounds: HttpLimits::stalled_max and its neighbours.
#pragma once

#include "base/time.h"
#include "wire/http/http_limits.h"

#include <cstdint>
#include <optional>

namespace spillway::wire {

class StallWatch {
 public:
  explicit StallWatch(const HttpLimits& limits) : limits_(limits) {}

  /// Bytes begin to wait. `taken`: the bytes that the client has taken so far; only differences count.
  void begin(Instant now, std::int64_t taken);

  /// No bytes are waiting any more.
  void end() { due_.reset(); }

  /// The time for the next call of is_stalled(); nullopt: nothing waits.
  std::optional<Instant> due() const { return due_; }

  /// Checks for a stall, from due() on. `pressed`: the memory is needed for others, so that the client has less time.
  bool is_stalled(Instant now, std::int64_t taken, bool pressed);

 private:
  const HttpLimits& limits_;
  std::optional<Instant> due_;
  Instant since_{};
  std::int64_t taken_before_ = 0;
};

}  // namespace spillway::wire
