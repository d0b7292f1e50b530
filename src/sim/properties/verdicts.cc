#include "sim/properties/verdicts.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::sim {

void Verdicts::violate(const Violated& what, Now now, std::string_view text) {
  violated_.insert(what.property);
  if (std::ranges::find(kinds_, what) == kinds_.end()) kinds_.push_back(what);
  if (lines_.size() >= kLinesMax) return;
  const double at = std::chrono::duration<double>(now.mono.time_since_epoch()).count();
  lines_.push_back(fmt::format("t={:.3f}s {}: {}", at, name_of(what.property), text));
}

}  // namespace spillway::sim
