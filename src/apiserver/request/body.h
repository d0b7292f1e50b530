// Parses bodies of requests into typed documents and checks format, size, strictness and agreement with the URL.
// Thread: any (pure but for the warnings that it adds). Source: spec "API server contract", 4.2, 5.1-5.4, 10.
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

/// A body in YAML costs a hundred times the work of one in JSON, so it may be as large as what is read before the loop.
inline constexpr std::size_t kYamlBytesMax = 256U << 10U;

/// 413 for a body over 3 MiB.
api::StatusResult<void> check_size(const api::Request& request);

/// The type of a resource's documents: as which bodies are read.
const api::Type& type_of(const Resource& resource);
/// The type by which the fields of the resource have owners.
const api::Type& field_type_of(const Resource& resource);

/// The patch of an object of that resource as a document, parsed unless the request has it parsed: JSON, an apply patch
/// also YAML. Errors as parse_bounded_json and parse_yaml_body.
Result<api::DocumentPtr> parsed_patch(const api::Request& request, const Resource& resource, api::PatchType type);

/// Reads YAML, of which JSON is a part: a body that begins with a brace and is JSON is read as JSON. Errors as
/// parse_bounded_json; kRequestEntityTooLarge: over kYamlBytesMax; kBadRequest: also several documents, a key that is
/// there twice, a merge key, a tag. Octal numbers are read as such.
Result<api::Json> parse_yaml_body(std::string_view text, std::size_t values_max);

/// The body as a document of that type. Errors as api::read_body and api::read_protobuf.
Result<api::TypedDocument> read_typed(const api::Request& request, const api::Type& type, BodyFormat format,
                                      const api::Json* canonical = nullptr);

/// A typed document. 415, 413, 400. Unknown and duplicate fields become warnings or, when strict, a 400. `canonical`:
/// as for api::read_body; null: unknown.
api::StatusResult<api::Json> read_object(const api::Request& request, const api::Type& type, FieldValidation validation,
                                         std::vector<std::string>& warnings, const api::Json* canonical = nullptr);

/// The body of an exchange, as above; a body that was parsed already is not parsed again.
api::StatusResult<api::Json> read_object(const Exchange& exchange, const api::Type& type, FieldValidation validation,
                                         std::vector<std::string>& warnings, const api::Json* canonical = nullptr);

/// 400 when the namespace of the document is not that of the URL.
api::StatusResult<void> check_namespace_matches(const api::Json& object, std::string_view ns);

/// The outcome of a patch as a typed document; `strict_errors` of the patched object are 422.
api::StatusResult<api::Json> patched_object(const api::Type& type, std::string_view kind_name, const api::Json& current,
                                            api::PatchType patch_type, const api::Json& patch,
                                            FieldValidation validation, std::vector<std::string>& warnings);

}  // namespace spillway::apiserver
