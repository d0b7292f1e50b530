// Validation of a service, and of its updates. Pure.
// Source: Kubernetes docs, "Service"; vectors api/validation_create, validation_update.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

namespace spillway::apiserver::kinds {

void validate_service(const api::Json& service, api::FieldErrors& errors);
void validate_service_update(const api::Json& service, const api::Json& old, Endpoint endpoint,
                             api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
