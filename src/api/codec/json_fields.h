// Conversions between one JSON value and one field of a value type: what json_decoder.h and json_writer.h are made of.
// Inside api/ only. Thread: any.
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/pod.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// The error of a JSON value that does not fit a field; `at` is the path below that field ("[cpu]"), mostly empty.
struct FieldProblem {
  std::string message;
  std::string at;
};

using FieldOutcome = std::optional<FieldProblem>;

/// "expected a string, got a list".
FieldProblem unexpected_type(std::string_view expected, const Json& found);

// Reading never sees null: null means absent. On a problem the value is unspecified.
FieldOutcome read_field(const Json& found, std::string& value);
FieldOutcome read_field(const Json& found, bool& value);
FieldOutcome read_field(const Json& found, std::int32_t& value);
FieldOutcome read_field(const Json& found, std::int64_t& value);
FieldOutcome read_field(const Json& found, std::uint64_t& value);
FieldOutcome read_field(const Json& found, WallTime& value);
FieldOutcome read_field(const Json& found, Quantity& value);
FieldOutcome read_field(const Json& found, std::vector<std::string>& value);
FieldOutcome read_field(const Json& found, std::vector<std::int64_t>& value);
FieldOutcome read_field(const Json& found, StringMap& value);
FieldOutcome read_field(const Json& found, ResourceList& value);
FieldOutcome read_field(const Json& found, Json& value);

template <typename T>
FieldOutcome read_field(const Json& found, std::optional<T>& value) {
  return read_field(found, value.emplace());
}

Json field_to_json(const std::string& value);
Json field_to_json(bool value);
Json field_to_json(std::int32_t value);
Json field_to_json(std::int64_t value);
Json field_to_json(std::uint64_t value);
Json field_to_json(const WallTime& value);  // whole seconds
Json field_to_json(const Quantity& value);
Json field_to_json(const std::vector<std::string>& value);
Json field_to_json(const std::vector<std::int64_t>& value);
Json field_to_json(const StringMap& value);
Json field_to_json(const ResourceList& value);
Json field_to_json(const Json& value);

template <typename T>
Json field_to_json(const std::optional<T>& value) {
  return value ? field_to_json(*value) : Json();
}

// True for a value that Kubernetes leaves out of a document if the field has omitempty.
template <typename T>
bool is_zero_field(const T& value) {
  return value == T{};
}

}  // namespace spillway::api
