// Bounds on a document that a client sends, once it is parsed. Bytes alone do not bound the work: three bytes of JSON,
// or two of protobuf, can be an object with a dozen members.
// Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// JSON values of one document: members, elements, and those that the schema fills in; what a member without a schema
/// holds (managedFields) counts as one. Chosen so that creating or applying such an object takes less than 50 ms.
inline constexpr std::size_t kDocumentValuesMax = 10'000;

/// JSON values of a body that is parsed: a returned object has an owner for each of its fields.
inline constexpr std::size_t kParsedValuesMax = 2 * kDocumentValuesMax;

/// JSON values of a JSON patch: its 10,000 operations have up to five each. What they may do is bounded as well.
inline constexpr std::size_t kPatchValuesMax = 5 * kDocumentValuesMax;

/// Fields on the wire of one protobuf body. Empty ones are written as well, so they are more than there are values.
inline constexpr std::size_t kWireFieldsMax = 4 * kDocumentValuesMax;

/// Fields of a stored value, so that every accepted document can be read again: a value of a document takes up to so
/// many fields, as empty ones are written as well.
inline constexpr std::size_t kStoredWireFieldsMax = 64 * kDocumentValuesMax;

/// The number of unknown or repeated fields that are reported, and bytes of the path of each.
inline constexpr std::size_t kComplaintsMax = 100;
inline constexpr std::size_t kComplaintBytesMax = 1'024;

/// Values of a CustomResourceDefinition: those of large operators have tens of thousands, and few are ever written.
inline constexpr std::size_t kDefinitionValuesMax = 100'000;

/// kRequestEntityTooLarge, with the bound.
Error too_many_values(std::size_t values_max = kDocumentValuesMax);

/// Parses like parse_json, but returns kRequestEntityTooLarge as soon as there are more than `values_max` values.
Result<Json> parse_bounded_json(std::string_view text, std::vector<std::string>* duplicates = nullptr,
                                std::size_t values_max = kParsedValuesMax);

/// `path`, or its beginning.
std::string complaint_path(std::string path);

}  // namespace spillway::api
