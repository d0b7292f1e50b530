// OpenAPI v2 as protobuf, the form that kubectl up to 1.28 requests. Thread: any (pure). Source: gnostic's
// OpenAPIv2.proto (numbers of the fields); spec "API server contract", 6.6.
#pragma once

#include "api/json/json.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// A document with these definitions, as the JSON of OpenAPI v2 has them. Of a schema are kept: $ref, format,
/// description, additionalProperties, type, items, properties and what begins with "x-".
std::string open_api_v2_protobuf(std::string_view title, std::string_view version, const api::Json& definitions);

}  // namespace spillway::apiserver
