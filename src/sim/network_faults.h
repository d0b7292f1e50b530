// Faults of the simulated network: of all messages, of one link, and cuts.
// Thread: any (values).
#pragma once

#include "base/time.h"

#include <cstdint>

namespace spillway::sim {

struct NetworkFaults {
  Duration latency_min = microseconds(200);
  Duration latency_max = milliseconds(3);
  std::uint32_t slow_ppm = 0;  // messages that take up to slow_max instead
  Duration slow_max = seconds(3);
  std::uint32_t lost_ppm = 0;         // requests or answers that never arrive
  std::uint32_t watch_break_ppm = 0;  // per watch event: the connection breaks
  std::uint32_t repeated_ppm = 0;     // answers to calls that arrive a second time, later
  std::uint32_t roam_ppm = 0;         // requests that go to another server although the present one is reachable

  friend bool operator==(const NetworkFaults&, const NetworkFaults&) = default;
};

/// A worse link between one endpoint and all servers.
struct Link {
  Duration latency{};  // every message takes up to that long more, at least half of it: they overtake one another
  std::uint32_t lost_ppm = 0;

  friend bool operator==(const Link&, const Link&) = default;
};

/// The direction of an endpoint's traffic that is cut.
enum class Cut { kBoth, kToServer, kFromServer };

}  // namespace spillway::sim
