// Pods as they arrive at an agent: the order of their admission, the pods that need none, and the pods that count as
// present.
// Thread: any (pure). Source: spec "Pod admission", 1; vectors admission/pod_additions.
#pragma once

#include "api/object/pod.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::admission {

/// Sorts into the order of admission: oldest first; pods of the same second, or without a time, keep their order of
/// arrival.
void sort_arrivals(std::vector<std::shared_ptr<const api::Pod>>& pods);

/// The state of a pod as its worker reports it.
struct WorkerState {
  bool termination_requested = false;
  bool terminated = false;  // no process is left
};

enum class Arrival {
  kMirror,      // the API's copy of a static pod: never admitted
  kNotStarted,  // is ending or has ended: handed without admission to its worker, which will not start it
  kAsked,
};

Arrival arrival_of(const api::Pod& pod, const WorkerState& worker);

/// True if the requests of a known pod count. A pod that is still ending counts, even as Failed; one that has ended
/// does not. `recorded_phase`: of the status the agent has recorded, published or not; nullopt: none.
bool is_active(const api::Pod& pod, std::optional<std::string_view> recorded_phase, const WorkerState& worker);

}  // namespace spillway::admission
