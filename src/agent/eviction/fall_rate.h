// The rate at which memory.available falls, and the time for which the node need not be observed.
// Thread: any (plain values). Bounded: one maximum per second of the last ten. Source: spec "Wake-up sources", 6.
#pragma once

#include "agent/contract/kill_grace.h"
#include "agent/contract/options.h"
#include "base/bytes.h"
#include "base/time.h"

#include <array>
#include <optional>

namespace spillway::agent {

// Constants that the engine and the reaction thread share.

/// The least interval between two observations while a victim is dying, or while no pod can be evicted.
inline constexpr Duration kBusyInterval = milliseconds(10);
inline constexpr Duration kHelplessInterval = milliseconds(100);
/// The time that a kill itself takes, on top of the grace.
inline constexpr Duration kKillMargin = milliseconds(200);
/// The span over which the present rate of the fall is measured, and the span that is remembered at all.
inline constexpr Duration kRecentFall = seconds(2);
inline constexpr Duration kFallMemory = seconds(10);
/// A container's time to end after a hard threshold, for which its memory has to last.
inline constexpr Duration kHardGrace = seconds(kStopSecondsMin);

class FallRate {
 public:
  void add(Bytes available, Instant now);
  /// The steepest fall of the last `window` (at most ten seconds), in bytes per second; zero if it never fell.
  Bytes steepest_per_second(Instant now, Duration window) const;

 private:
  friend struct RecordFields;  // recordings keep what it remembers

  struct Second {
    std::int64_t number = -1;  // since the epoch of Instant
    Bytes fall_per_second;
  };

  struct Sample {
    Bytes available;
    Instant at;
  };

  std::array<Second, 11> seconds_{};
  std::optional<Sample> last_;
};

/// headroom / (2 R), within the limits; R = max(floor, twice the steepest fall). A headroom of zero or less: the limit.
Duration observe_interval(Bytes headroom, Bytes steepest_fall_per_second, const ObserveOptions& options);

/// True if memory would run out before a pod with this grace is gone.
bool is_emergency(Bytes available, Bytes blind_zone, Bytes fall_per_second, Duration grace);

}  // namespace spillway::agent
