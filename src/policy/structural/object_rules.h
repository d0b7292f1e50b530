// A custom resource against the schema of its version. Thread: any (pure). Source: Kubernetes docs, "Extend the
// Kubernetes API with CustomResourceDefinitions", validation, validation ratcheting.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "policy/structural/structural_schema.h"

namespace spillway::structural {

/// Adds all errors of an object whose own kind, apiVersion and metadata are checked elsewhere: its values, resources
/// embedded in it, lists that are sets or maps, then the rules of its schema. `old`: the object before an update; null:
/// a create. Errors in unchanged parts of an update are not reported again. An object whose defaults do not fit
/// (object_shape.h) is refused for that alone.
void validate_object(const Schema& schema, const api::Json& object, const api::Json* old, api::FieldErrors& errors);

}  // namespace spillway::structural
