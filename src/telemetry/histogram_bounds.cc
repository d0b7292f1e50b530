#include "telemetry/histogram_bounds.h"

namespace spillway::telemetry {

std::vector<double> exponential_bounds(double start, double factor, std::size_t count) {
  std::vector<double> bounds{start};
  while (bounds.size() < count) bounds.push_back(bounds.back() * factor);
  return bounds;
}

}  // namespace spillway::telemetry
