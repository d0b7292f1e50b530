// Durations of the turns of a loop, as metrics, and once a minute in the log if some were slow; at the end, the turn
// with the most processor time. Thread: that loop.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "runtime/slow_turns.h"
#include "runtime/thread_time.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <string>

namespace spillway::apps {

/// A minute whose longest turn was longer is logged as a warning, others at level debug. The alert LoopIsSlow of
/// deploy/prometheus has the same bound.
inline constexpr Duration kTurnWarned = milliseconds(500);

class LoopMetrics {
 public:
  /// `loop`: its name as a label and in the log: "main", "nodes".
  LoopMetrics(telemetry::Registry& registry, telemetry::Log log, std::string loop);

  void record(const runtime::Loop::Turn& turn, Instant now);

  /// Logs the longest turn, and those of other causes that were slow. When the loop has ended.
  void log_longest() const;

 private:
  telemetry::Log log_;
  std::string loop_;
  telemetry::Histogram seconds_;
  telemetry::Gauge longest_;
  telemetry::Gauge longest_processor_;
  // The longest turns of this minute and of the last one: the gauge covers at least one minute.
  Instant minute_began_{};
  Duration this_minute_{};
  Duration last_minute_{};
  runtime::LongestTurns longest_turns_{runtime::thread_processor_time};
  runtime::SlowTurns slow_{runtime::waited_for_processor};
};

}  // namespace spillway::apps
