// Validation of the status of a Job. Pure. Source: Kubernetes API reference, "JobStatus"; vectors
// api/validation_update.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

namespace spillway::apiserver::kinds {

/// The status, and what a status may not become.
void validate_job_status(const api::Json& object, const api::Json& old, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
