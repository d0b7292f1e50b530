// How long the turns of the loop take, as metrics, and once a minute in the log if some were slow.
// Thread: loop.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "runtime/slow_turns.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace spillway::apps {

/// A minute whose longest turn was longer is logged as a warning, others at level debug. The alert LoopIsSlow of
/// deploy/prometheus has the same bound.
inline constexpr Duration kTurnWarned = milliseconds(500);

class LoopMetrics {
 public:
  LoopMetrics(telemetry::Registry& registry, telemetry::Log log);

  void note(const runtime::Loop::Turn& turn, Instant now);

 private:
  telemetry::Log log_;
  telemetry::Histogram seconds_;
  telemetry::Gauge longest_;
  // The longest of the minute that runs, and of the one before: what the gauge shows is at least a minute of the past.
  Instant minute_began_{};
  Duration this_minute_{};
  Duration last_minute_{};
  runtime::SlowTurns slow_{runtime::waited_for_processor};
};

}  // namespace spillway::apps
