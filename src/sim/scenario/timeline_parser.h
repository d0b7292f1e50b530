// The members `timeline` of a scenario. Thread: any (pure).
#pragma once

#include "sim/scenario/document.h"
#include "yaml/place.h"

#include <vector>

namespace spillway::sim {

Result<std::vector<TimelineEvent>> parse_timeline(const yaml::Place& scenario,
                                                  const std::vector<MachineSpec>& machines);

/// The time at which the last event has ended.
Duration end_of(const std::vector<TimelineEvent>& timeline, std::size_t nodes);

}  // namespace spillway::sim
