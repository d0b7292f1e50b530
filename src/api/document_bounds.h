// How large a document that a client sends may be once it is read. Bytes alone do not bound the work: three bytes of
// JSON, or two of protobuf, can stand for an object with a dozen members.
// Thread: any (pure).
#pragma once

#include "api/json.h"
#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// JSON values of one document: members, elements, and those that the schema fills in. A document of 1.5 MiB, the most
/// that is stored, has about 50,000 when it is made of short fields.
inline constexpr std::size_t kDocumentValuesMax = 50'000;

/// Fields on the wire of one protobuf body. Empty ones are written as well, so they are more than there are values.
inline constexpr std::size_t kWireFieldsMax = 4 * kDocumentValuesMax;

/// Unknown or repeated fields that are told, and bytes of the path of each.
inline constexpr std::size_t kComplaintsMax = 100;
inline constexpr std::size_t kComplaintBytesMax = 1'024;

/// kRequestEntityTooLarge, with the bound.
Error too_many_values();

/// As parse_json, and kRequestEntityTooLarge as soon as there are more values than a document may have.
Result<Json> parse_bounded_json(std::string_view text, std::vector<std::string>* duplicates = nullptr);

/// `path`, or its beginning.
std::string complaint_path(std::string path);

}  // namespace spillway::api
