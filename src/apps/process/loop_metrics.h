// How long the turns of the loop take, as metrics and, for those that hold up everybody else, as log lines.
// Thread: loop.
#pragma once

#include "base/time.h"
#include "runtime/loop.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <optional>

namespace spillway::apps {

/// A turn that takes longer is a defect, or the machine is too slow: said in the log.
inline constexpr Duration kTurnMax = milliseconds(50);
/// Between two such lines; what is left out is counted in the next.
inline constexpr Duration kTurnLogEvery = seconds(10);

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
  std::optional<Instant> said_;
  std::uint64_t unsaid_ = 0;
};

}  // namespace spillway::apps
