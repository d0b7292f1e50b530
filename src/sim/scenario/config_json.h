// Writes the member `config` of a scenario file from its parsed value. Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "sim/scenario/document.h"

namespace spillway::sim {

/// The settings that differ from the defaults; an empty mapping: none.
api::Json config_json(const ScenarioConfig& config);

}  // namespace spillway::sim
