// Validation of the spec of a Job. Pure.
// Source: Kubernetes API reference, "Job"; vectors api/validation_create, api/validation_update.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string_view>

namespace spillway::apiserver::kinds {

/// Everything of a Job's spec but its selector; also of the template of a CronJob. Fields start with `path`. `before`:
/// the spec that an update replaces; null: the object is new.
void validate_job_template_spec(const api::Json& spec, const api::Json& before, std::string_view path,
                                api::FieldErrors& errors);
/// Validates a whole JobSpec.
void validate_job_spec(const api::Json& spec, const api::Json& before, api::FieldErrors& errors);
/// Validates that an update changes no immutable member of the spec.
void validate_job_change(const api::Json& object, const api::Json& old, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
