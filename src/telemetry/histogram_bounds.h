// Bounds of histograms. Thread: any (pure).
#pragma once

#include <cstddef>
#include <vector>

namespace spillway::telemetry {

/// `count` (≥ 1) bounds from `start` on, each `factor` times the one before.
std::vector<double> exponential_bounds(double start, double factor, std::size_t count);

}  // namespace spillway::telemetry
