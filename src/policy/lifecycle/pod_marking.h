// The Ready condition of pods whose node is not ready.
// Thread: any (pure functions). Source: spec "Node lifecycle", S5.7.
#pragma once

#include "api/object/pod.h"

#include <cstdint>

namespace spillway::lifecycle {

enum class PodReadyStep : std::uint8_t { kSkip, kWrite };

/// kSkip: the pod has no Ready condition, or it is False already and `skip_false` is set.
PodReadyStep plan_pod_not_ready(const api::Pod& pod, bool skip_false);

}  // namespace spillway::lifecycle
