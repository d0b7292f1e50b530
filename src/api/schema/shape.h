// Whether a document has the shape of its type: members that the type knows, each of the right sort of JSON value. What
// has it can be used as it is; what has not goes through read_body(), which says why.
// Thread: any (pure). Cost: linear in the document, without a copy. Source: spec "API server contract", 5.1.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"

namespace spillway::api {

/// What strings say (times, quantities) is not looked at; nulls fit everywhere.
bool has_shape(const Type& type, const Json& document);

}  // namespace spillway::api
