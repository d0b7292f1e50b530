// A pass on a node that frees nothing by itself: both halves, one after the other, as EvictionEngine carries them out.
#pragma once

#include "policy/eviction/decide.h"

#include <span>
#include <utility>

namespace spillway::eviction {

inline PassResult run_whole_pass(const PassConfig& config, PassState state, const api::Summary& summary,
                                 std::span<const api::Pod* const> active, Now now) {
  PassResult result = observe_pressure(config, std::move(state), summary, active, now);
  if (result.pending) choose_victim(config, result, summary, active, nullptr, now);
  return result;
}

}  // namespace spillway::eviction
