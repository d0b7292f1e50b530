// Checks that a document has the shape of its type: members that the type knows, each of the right sort of JSON value.
// A document with that shape can be used as it is; any other goes through read_body(), which says why.
// Thread: any (pure). Cost: linear in the document, without a copy. Source: spec "API server contract", 5.1.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"

namespace spillway::api {

/// The contents of strings (times, quantities) are not checked; nulls fit everywhere.
bool has_shape(const Type& type, const Json& document);

}  // namespace spillway::api
