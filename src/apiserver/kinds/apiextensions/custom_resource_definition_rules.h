// Validation of a CustomResourceDefinition. Thread: any (pure). Source: API reference, CustomResourceDefinition v1;
// Kubernetes docs, "Extend the Kubernetes API with CustomResourceDefinitions", "Versions in CustomResourceDefinitions".
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/kind_hooks.h"

namespace spillway::apiserver::kinds {

void validate_new_definition(const api::Json& definition, api::FieldErrors& errors);
void validate_changed_definition(const api::Json& definition, const api::Json& old, Endpoint endpoint,
                                 api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
