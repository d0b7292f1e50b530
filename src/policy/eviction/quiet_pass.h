// Nearly every pass of the eviction manager finds nothing to do: such a one is told from the others without a decision
// being made. In decide.cc, beside the pass that it stands for.
#pragma once

#include "policy/eviction/decide.h"

#include <span>

namespace spillway::eviction {

/// observe_pressure() without its decision. False, and nothing has changed, if a threshold is met or one was in the
/// last pass, a condition is to change, or somebody exceeds his local storage. `seen`: observe() of `summary`.
bool pass_quietly(const PassConfig& config, PassState& state, const Observations& seen, const api::Summary& summary,
                  std::span<const api::Pod* const> active, Now now);

}  // namespace spillway::eviction
