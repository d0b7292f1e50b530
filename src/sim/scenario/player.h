// Plays a scenario on the product's engines in virtual time. Thread: one. The same scenario and seed give the same
// outcome, trace hash included, with or without an observer.
#pragma once

#include "sim/run_observer.h"
#include "sim/scenario/document.h"
#include "sim/scenario/outcome.h"
#include "telemetry/log.h"

#include <cstdint>
#include <functional>

namespace spillway::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  RunObserver* observer = nullptr;  // null: not observed
  /// Asked every virtual second with the share that is done, 0 to 1; false: the run ends there, interrupted.
  std::function<bool(double share)> should_continue;
  /// Lines of every engine, each with its virtual time as the field t_s; null: none.
  telemetry::Log::Sink log = {};
};

RunOutcome run_scenario(const Scenario& scenario, const RunOptions& options);

}  // namespace spillway::sim
