// The kinds of flowcontrol.apiserver.k8s.io, and rules that both share. Pure.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

namespace spillway::apiserver::kinds {

/// An update is checked as a whole, without the checks of immutable metadata.
inline constexpr MetadataChecks kFlowChecks{.update_change = 0, .status_change = 0};

Resource flow_schema_kind();
Resource priority_level_kind();

/// Validates status.conditions: no type is empty or occurs twice.
void validate_flow_conditions(const api::Json& object, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
