// A run's outcome as sentences and figures for people. Thread: any (pure).
#pragma once

#include "base/time.h"
#include "sim/run_summary.h"
#include "sim/scenario/outcome.h"

#include <optional>
#include <string>
#include <string_view>

namespace spillway::sim {

/// The verdict first, then the meaning, then the figures. Times count from the beginning of the timeline.
RunSummary summary_of(const RunOutcome& outcome);

/// "times a node left Ready" of HappeningKind::kFlip.
std::string_view figure_words(HappeningKind kind);

/// "10m29s"; below ten seconds with milliseconds. Rounded down, so that a time before a bound never reads as the bound.
/// nullopt: "never".
std::string virtual_time_text(std::optional<Duration> time);

}  // namespace spillway::sim
