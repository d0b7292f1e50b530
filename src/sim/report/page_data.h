// Runs as the JSON that the page of a report reads. Series are lists of numbers, [time since the one before, value, …],
// in milliseconds; memory.available in samples and 4,096ths of the node's memory; texts that occur often are numbers of
// a list of texts. Thread: any (pure).
#pragma once

#include "policy/reason.h"
#include "sim/history/run_history.h"

#include <functional>
#include <span>
#include <string>

namespace spillway::sim {

/// A decision as people read it: the answer in the first line, then its evidence.
using Explain = std::function<std::string(const policy::Decision&)>;

/// JSON without "<", so that it can be in a script element whatever the names in it are.
std::string page_data(std::span<const RunHistory> runs, const Explain& explain);

/// [at, value, …] with each time as the distance to the one before: "[0,1,15000,3]".
std::string delta_text(const Series& series);

}  // namespace spillway::sim
