// Validation of the status of a Job. Pure. Source: Kubernetes API reference, "JobStatus"; vectors
// api/validation_update.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

namespace spillway::apiserver::kinds {

/// Validates the status, and its changes.
void validate_job_status(const api::Json& object, const api::Json& old, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
