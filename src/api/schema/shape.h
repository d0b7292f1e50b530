// Checks that a document has the shape of its type: known members, each of the right sort of JSON value. A document
// with that shape can be used unchanged; any other is parsed by read_body(), which reports the errors.
// Thread: any (pure). Cost: linear in the document, without a copy. Source: spec "API server contract", 5.1.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"

namespace spillway::api {

/// The contents of strings (times, quantities) are not checked; nulls fit everywhere.
bool has_shape(const Type& type, const Json& document);

}  // namespace spillway::api
