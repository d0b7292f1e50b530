#include "apps/process/loop_metrics.h"

#include <algorithm>
#include <utility>

namespace spillway::apps {

LoopMetrics::LoopMetrics(telemetry::Registry& registry, telemetry::Log log)
    : log_(std::move(log)),
      seconds_(registry.histogram("spillway_loop_turn_seconds", "Time of one turn of the loop that ran anything",
                                  {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5})),
      longest_(registry.gauge("spillway_loop_longest_turn_seconds",
                              "The longest turn of the loop in the last one to two minutes")) {}

void LoopMetrics::note(const runtime::Loop::Turn& turn, Instant now) {
  seconds_.observe(in_seconds(turn.took));
  if (now - minute_began_ >= minutes(1)) {
    last_minute_ = now - minute_began_ < minutes(2) ? this_minute_ : Duration::zero();
    this_minute_ = Duration::zero();
    minute_began_ = now;
    longest_.set(in_seconds(std::max(last_minute_, turn.took)));
  }
  if (turn.took > this_minute_) {
    this_minute_ = turn.took;
    longest_.set(in_seconds(std::max(last_minute_, this_minute_)));
  }
  if (turn.took <= kTurnMax) return;
  if (said_ && now - *said_ < kTurnLogEvery) {
    ++unsaid_;
    return;
  }
  said_ = now;
  log_.warning("slow turn of the loop", {{"milliseconds", turn.took / milliseconds(1)},
                                         {"longest_piece_milliseconds", turn.longest / milliseconds(1)},
                                         {"what", turn.what.empty() ? "other" : turn.what},
                                         {"unsaid_before", std::exchange(unsaid_, 0)}});
}

}  // namespace spillway::apps
