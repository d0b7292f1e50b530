// A schema as OpenAPI documents publish it. Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API
// with CustomResourceDefinitions", publish validation schema in OpenAPI; OpenAPI 3.0, schema object.
#pragma once

#include "api/json/json.h"
#include "policy/structural/structural_schema.h"

namespace spillway::structural {

/// The schema for OpenAPI v3, without kind, apiVersion and metadata of its root, which are those of any resource.
/// Embedded resources have theirs.
api::Json open_api_v3(const Schema& schema);

/// The schema for OpenAPI v2, which has fewer features: combinations and nullable are left out, and with nullable the
/// type; int-or-string has no type; members below one that keeps unknown fields are left out.
api::Json open_api_v2(const Schema& schema);

}  // namespace spillway::structural
