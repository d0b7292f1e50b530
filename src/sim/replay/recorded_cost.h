// The cost of a setting in a recorded situation: the recording is replayed under it, and its decisions are counted. For
// a node: evictions, and the memory its hard threshold keeps free. For controllers: nodes marked, tainted, and emptied.
// Thread: one. Bounds: the recording and its decisions. Source: docs/simulate.md, "Which settings".
#pragma once

#include "base/error.h"
#include "controllers/recording/lifecycle_record.h"
#include "sim/scenario/advice.h"

#include <cstddef>
#include <functional>
#include <string_view>

namespace spillway::sim {

/// True if a file that begins so is a recording of a node or of a controller.
bool is_recording(std::string_view head);

/// The controller that `config` makes of one that was recorded under another configuration. kInvalid: it does not
/// parse.
Result<controllers::RecordedController> controller_under(const ConfigChoice& config,
                                                         const controllers::RecordedController& was);

/// `should_continue`, which may be empty: see agent::replay_recording(). kInvalid: the recording cannot be read, or has
/// no data for such a choice: the effect of a reservation is not recorded.
Result<Cost> cost_of_recording(std::string_view file, const Choice& choice,
                               const std::function<bool(std::size_t done, std::size_t all)>& should_continue = {});

}  // namespace spillway::sim
