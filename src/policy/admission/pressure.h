// The eviction manager's answer to a new pod: under pressure some are turned away.
// Thread: any (pure). Source: spec "Eviction manager", 12; "Pod admission", 3; vectors admission/eviction_admit,
// eviction/admit.
#pragma once

#include "api/object/pod.h"
#include "policy/admission/answer.h"

#include <span>
#include <string_view>

namespace spillway::admission {

/// Critical pods always pass. Under memory pressure alone only BestEffort pods that do not tolerate it are refused.
/// `conditions`: the names of those that hold, "MemoryPressure" and so on, in the order in which the message names
/// them.
Answer admit_under_pressure(std::span<const std::string_view> conditions, const api::Pod& pod);

}  // namespace spillway::admission
