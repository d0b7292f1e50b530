// Documents against their type: the first step of a server with a body, before it evaluates the content. The result is
// in canonical form: values of the declared types, quantities and times as Kubernetes prints them, zero values left out
// unless they matter, nested objects present, unknown fields gone but listed.
// Thread: any (pure). Source: spec "API server contract", 5.1-5.3, 5.6.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"
#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

struct TypedDocument {
  Json object;                                // with apiVersion and kind if the type is a kind
  std::vector<std::string> unknown_fields;    // "spec.containers[0].foo"; dropped from the object
  std::vector<std::string> duplicate_fields;  // "metadata.labels.a"; the last value was taken
};

/// `canonical`, where it is given, is a document of the type in canonical form, such as the stored object: parts of the
/// new one that are shared with it, or equal, are taken unchanged.

/// The body of a create or update. kBadRequest: `Pod in version "v1" cannot be handled as a Pod: PATH: WHY`; also when
/// the body is no object or names another kind. kRequestEntityTooLarge: more than kDocumentValuesMax values. A body
/// without kind and apiVersion is taken as `type`.
Result<TypedDocument> read_body(const Type& type, const Json& document, const Json* canonical = nullptr);
/// Reads JSON text, with the duplicate fields. Text that is no JSON: unrecognized_body().
Result<TypedDocument> read_body(const Type& type, std::string_view text);

/// kBadRequest for a body that is no document at all: `the object provided is unrecognized (must be of type Pod): WHY
/// (START)`, with its first 30 bytes, in hexadecimal unless they begin a JSON object.
Error unrecognized_body(const Type& type, std::string_view why, std::string_view body);

/// A partial document, as server-side apply sends it: values in canonical form, but nothing is filled in and zero
/// values are kept; nulls are removed. Errors are those of read_body.
Result<TypedDocument> read_partial(const Type& type, const Json& document);

/// The outcome of a patch. kInvalid with "patch" in `at`: the patch made something that is no object of the type.
Result<TypedDocument> read_patched(const Type& type, const Json& document, const Json* canonical = nullptr);

/// One line per warning: `unknown field "spec.foo"`, `duplicate field "data.x"`.
std::vector<std::string> field_warnings(const TypedDocument& document);

/// `strict decoding error: unknown field "a", duplicate field "data.x"`; empty if there is nothing to complain about.
std::string strict_text(const TypedDocument& document);

}  // namespace spillway::api
