#include "apps/process/loop_metrics.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace spillway::apps {

LoopMetrics::LoopMetrics(telemetry::Registry& registry, telemetry::Log log, std::string loop)
    : log_(std::move(log)),
      loop_(std::move(loop)),
      seconds_(registry.histogram("spillway_loop_turn_seconds", "Time of one turn of the loop that ran anything",
                                  {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}, {{"loop", loop_}})),
      longest_(registry.gauge("spillway_loop_longest_turn_seconds",
                              "The longest turn of the loop in the last one to two minutes", {{"loop", loop_}})),
      longest_processor_(registry.gauge("spillway_loop_longest_turn_processor_seconds",
                                        "The most processor time that one turn of the loop took since the start",
                                        {{"loop", loop_}})) {}

void LoopMetrics::record(const runtime::Loop::Turn& turn, Instant now) {
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
  if (longest_turns_.count(turn)) longest_processor_.set(in_seconds(longest_turns_.entries().front().took));
  const auto report = slow_.count(turn, now);
  if (!report) return;
  const std::int64_t longest = report->longest / milliseconds(1);
  if (report->longest > kTurnWarned) {
    log_.warning(
        "the event loop had slow turns in the last minute",
        {{"cause", report->cause}, {"longest_milliseconds", longest}, {"loop", loop_}, {"slow_turns", report->turns}});
  } else {
    log_.debug(
        "turns of the loop were slow in the last minute",
        {{"cause", report->cause}, {"longest_milliseconds", longest}, {"loop", loop_}, {"slow_turns", report->turns}});
  }
}

void LoopMetrics::log_longest() const {
  const std::vector<runtime::LongestTurns::Entry>& entries = longest_turns_.entries();
  for (const auto& each : entries) {
    if (&each != &entries.front() && each.took <= runtime::SlowTurns::kSlow) return;
    log_.info("longest turn of the event loop",
              {{"cause", each.cause}, {"loop", loop_}, {"processor_milliseconds", each.took / milliseconds(1)}});
  }
}

}  // namespace spillway::apps
