// Makes a failing scenario small: fewest events, then faults, nodes and parts of the cluster, then seconds, as long as
// it still fails. Thread: one. Every candidate is printed and parsed again before it is tried, so that the result is a
// file that can be played. Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (ddmin).
#pragma once

#include "sim/scenario/document.h"

#include <cstddef>
#include <functional>

namespace spillway::sim {

struct Minimised {
  Scenario scenario;
  std::size_t runs = 0;
};

/// `fails` plays a scenario, and returns true if the same property is violated for the same kind of object; it is
/// called at most `runs_max` times. `failing` fails. Where the memory of its nodes is enough for its pods at the
/// beginning, that of the result is, too.
Minimised minimise(Scenario failing, const std::function<bool(const Scenario&)>& fails, std::size_t runs_max);

}  // namespace spillway::sim
