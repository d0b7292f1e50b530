// Nearly every pass of the eviction manager finds nothing to do. This shortcut recognizes such a pass without making a
// decision. Defined in decide.cc, beside the full pass.
#pragma once

#include "policy/eviction/decide.h"

#include <span>

namespace spillway::eviction {

/// observe_pressure() without its decision. False, and nothing has changed, if a threshold is met or one was in the
/// last pass, a condition is to change, or a pod exceeds its local storage. `seen`: observe() of `summary`.
bool pass_quietly(const PassConfig& config, PassState& state, const Observations& seen, const api::Summary& summary,
                  std::span<const api::Pod* const> active, Now now);

}  // namespace spillway::eviction
