// Bodies of requests into typed documents: format, size, strictness, contradictions with the URL.
// Thread: any (pure but for the warnings it leaves). Source: spec "API server contract", 4.2, 5.1-5.4, 10.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "api/patch/patch.h"
#include "api/schema/schema.h"
#include "api/schema/typed.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

inline constexpr std::size_t kBodyBytesMax = 3U << 20U;

/// 413 for a body over 3 MiB.
api::StatusResult<void> check_size(const api::Request& request);

/// The type of a resource's documents: as which bodies are read.
const api::Type& type_of(const Resource& resource);
/// As which their fields have owners.
const api::Type& field_type_of(const Resource& resource);

/// The body as a JSON document, parsed unless it came parsed. Errors as parse_bounded_json.
Result<api::DocumentPtr> parsed_body(const api::Request& request, std::size_t values_max);

/// The body as a document of that type. Errors as api::read_body and api::read_protobuf.
Result<api::TypedDocument> read_typed(const api::Request& request, const api::Type& type, BodyFormat format,
                                      const api::Json* canonical = nullptr);

/// A typed document. 415, 413, 400. Unknown and duplicate fields become warnings or, when strict, a 400.
/// `canonical`: as for api::read_body; null: nothing is known.
api::StatusResult<api::Json> read_object(const api::Request& request, const api::Type& type, FieldValidation validation,
                                         std::vector<std::string>& warnings, const api::Json* canonical = nullptr);

/// The same of an exchange; what has been read of its body already is not read again.
api::StatusResult<api::Json> read_object(const Exchange& exchange, const api::Type& type, FieldValidation validation,
                                         std::vector<std::string>& warnings, const api::Json* canonical = nullptr);

/// 400 when the namespace of the document is not that of the URL.
api::StatusResult<void> check_namespace_matches(const api::Json& object, std::string_view ns);

/// The outcome of a patch as a typed document; `strict_errors` of the patched object are 422.
api::StatusResult<api::Json> patched_object(const api::Type& type, std::string_view kind_name, const api::Json& current,
                                            api::PatchType patch_type, const api::Json& patch,
                                            FieldValidation validation, std::vector<std::string>& warnings);

}  // namespace spillway::apiserver
