// Strategic merge patch: like a merge patch, but lists merge by the keys of the schema, with the directives $patch,
// $retainKeys, $setElementOrder/F and $deleteFromPrimitiveList/F.
// Thread: any (pure). Source: Kubernetes community docs, "Strategic Merge Patch"; spec "API server contract", 10.3.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"
#include "base/error.h"

namespace spillway::api {

/// kBadRequest: a malformed directive, or a list element without its merge key; names the path.
Result<Json> strategic_merge(const Type& type, const Json& original, const Json& patch);

}  // namespace spillway::api
