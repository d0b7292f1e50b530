// Descriptions of types and fields, in a sentence or two, as OpenAPI documents and `kubectl explain` show them. They
// are read from the files schema/descriptions/*.txt, which are built into the program. There a line "core/v1.Pod: text"
// begins a type and a line " spec: text" describes a field of it; lines with # are remarks. The texts are not copied:
// only the names of types are indexed, on first use. Thread: any. Source: our own words, from the effects of the fields
// in Spillway.
#pragma once

#include "api/schema/schema.h"

#include <string_view>
#include <vector>

namespace spillway::api {

/// A line of the files. `field` is empty for the type itself.
struct Description {
  std::string_view type;
  std::string_view field;
  std::string_view text;
};

/// Empty if the type has no description.
std::string_view description_of(const Type& type);

/// The description of a field by its JSON name. A type with inlined messages also has the fields of these, unless it
/// describes that name itself. Empty if the field is not described. O(fields).
std::string_view description_of(const Type& type, std::string_view field);

/// The descriptions of all types and fields, in the order of the files.
std::vector<Description> all_descriptions();

}  // namespace spillway::api
