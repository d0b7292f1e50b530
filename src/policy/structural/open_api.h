// A schema as OpenAPI documents publish it. Thread: any (pure). Source: Kubernetes docs, "Extend the Kubernetes API
// with CustomResourceDefinitions", publish validation schema in OpenAPI; OpenAPI 3.0, schema object.
#pragma once

#include "api/json/json.h"
#include "policy/structural/structural_schema.h"

namespace spillway::structural {

/// For OpenAPI v3: what the schema says, without kind, apiVersion and metadata of its root, which are those of any
/// resource. Resources embedded in it have theirs.
api::Json open_api_v3(const Schema& schema);

/// For OpenAPI v2, which knows less: combinations and nullable are left out, and with nullable the type; int-or-string
/// has no type; below what keeps unknown members nothing is said.
api::Json open_api_v2(const Schema& schema);

}  // namespace spillway::structural
