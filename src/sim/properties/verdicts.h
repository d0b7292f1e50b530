// The violations found in a run, in order, each with the time and the name of its property. Thread: one.
// Bounds: a hundred lines.
#pragma once

#include "base/time.h"
#include "sim/properties/property.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::sim {

class Verdicts {
 public:
  static constexpr std::size_t kLinesMax = 100;

  void violate(const Violated& what, Now now, std::string_view text);

  void violate(Property property, Now now, std::string_view text) { violate(sim::violated(property), now, text); }

  /// "t=12.500s taint-rate: zone …".
  const std::vector<std::string>& lines() const { return lines_; }

  const std::set<Property>& violated() const { return violated_; }

  /// The kinds of violation, each once, in the order in which they were found.
  const std::vector<Violated>& kinds() const { return kinds_; }

 private:
  std::vector<std::string> lines_;
  std::set<Property> violated_;
  std::vector<Violated> kinds_;
};

}  // namespace spillway::sim
