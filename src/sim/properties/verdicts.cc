#include "sim/properties/verdicts.h"

#include <fmt/format.h>

namespace spillway::sim {

void Verdicts::violate(Property property, Now now, std::string_view text) {
  violated_.insert(property);
  if (lines_.size() >= kLinesMax) return;
  const double at = std::chrono::duration<double>(now.mono.time_since_epoch()).count();
  lines_.push_back(fmt::format("t={:.3f}s {}: {}", at, name_of(property), text));
}

}  // namespace spillway::sim
