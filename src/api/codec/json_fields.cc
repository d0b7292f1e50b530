#include "api/codec/json_fields.h"

#include "api/text/time_text.h"

#include <limits>
#include <utility>

namespace spillway::api {
namespace {

FieldProblem out_of_range(std::string_view expected, const Json& found) {
  return {fmt::format("expected {}, got {}", expected, to_text(found)), {}};
}

template <typename T>
FieldOutcome read_integer(const Json& found, std::string_view expected, T& value) {
  if (!found.is_integer()) return unexpected_type(expected, found);
  const std::optional<std::int64_t> wide = found.if_int64();
  if (!wide || !std::in_range<T>(*wide)) return out_of_range(expected, found);
  value = static_cast<T>(*wide);
  return std::nullopt;
}

/// Reads every member of an object into a map; null members are zero values, as upstream has it.
template <typename Map>
FieldOutcome read_map(const Json& found, Map& value) {
  const Json::Object* object = found.if_object();
  if (object == nullptr) return unexpected_type("an object", found);
  value.clear();
  for (const auto& [key, member] : *object) {
    auto& slot = value.emplace_hint(value.end(), key, typename Map::mapped_type())->second;
    if (member.is_null()) continue;
    if (auto problem = read_field(member, slot)) {
      return FieldProblem{std::move(problem->message), fmt::format("[{}]{}", key, problem->at)};
    }
  }
  return std::nullopt;
}

template <typename Map>
Json map_to_json(const Map& value) {
  Json::Object::Members members;
  members.reserve(value.size());
  for (const auto& [key, entry] : value) members.push_back({key, field_to_json(entry)});
  Json::Object object;
  object.assign_unsorted(std::move(members));
  return object;
}

}  // namespace

FieldProblem unexpected_type(std::string_view expected, const Json& found) {
  return {fmt::format("expected {}, got {}", expected, type_phrase(found)), {}};
}

FieldOutcome read_field(const Json& found, std::string& value) {
  if (!found.is_string()) return unexpected_type("a string", found);
  value = *found.if_string();
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, bool& value) {
  if (!found.is_bool()) return unexpected_type("a boolean", found);
  value = *found.if_bool();
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, std::int32_t& value) {
  return read_integer(found, "a 32-bit integer", value);
}

FieldOutcome read_field(const Json& found, std::int64_t& value) {
  return read_integer(found, "a 64-bit integer", value);
}

FieldOutcome read_field(const Json& found, std::uint64_t& value) {
  if (!found.is_integer()) return unexpected_type("an unsigned 64-bit integer", found);
  const std::optional<std::uint64_t> wide = found.if_uint64();
  if (!wide) return out_of_range("an unsigned 64-bit integer", found);
  value = *wide;
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, WallTime& value) {
  if (!found.is_string()) return unexpected_type("a time", found);
  const auto time = parse_time(*found.if_string());
  if (!time) return FieldProblem{time.error().message, {}};
  value = *time;
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, Quantity& value) {
  if (!found.is_string() && !found.is_number()) return unexpected_type("a quantity", found);
  const auto quantity = parse_quantity_token(found.is_string() ? *found.if_string() : to_text(found));
  if (!quantity) return FieldProblem{fmt::format("{}: {}", to_text(found), quantity.error().message), {}};
  value = *quantity;
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, std::vector<std::string>& value) {
  const Json::Array* array = found.if_array();
  if (array == nullptr) return unexpected_type("a list", found);
  value.clear();
  value.reserve(array->size());
  for (const Json& element : *array) {
    if (!element.is_string()) {
      FieldProblem problem = unexpected_type("a string", element);
      problem.at = fmt::format("[{}]", value.size());
      return problem;
    }
    value.push_back(*element.if_string());
  }
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, std::vector<std::int64_t>& value) {
  const Json::Array* array = found.if_array();
  if (array == nullptr) return unexpected_type("a list", found);
  value.clear();
  value.reserve(array->size());
  for (const Json& element : *array) {
    std::int64_t number = 0;
    if (FieldOutcome problem = read_field(element, number)) {
      problem->at = fmt::format("[{}]", value.size());
      return problem;
    }
    value.push_back(number);
  }
  return std::nullopt;
}

FieldOutcome read_field(const Json& found, StringMap& value) {
  return read_map(found, value);
}

FieldOutcome read_field(const Json& found, ResourceList& value) {
  return read_map(found, value);
}

FieldOutcome read_field(const Json& found, Json& value) {
  value = found;
  return std::nullopt;
}

Json field_to_json(const std::string& value) {
  return value;
}

Json field_to_json(bool value) {
  return value;
}

Json field_to_json(std::int32_t value) {
  return value;
}

Json field_to_json(std::int64_t value) {
  return value;
}

Json field_to_json(std::uint64_t value) {
  return value;
}

Json field_to_json(const WallTime& value) {
  return format_time(value);
}

Json field_to_json(const Quantity& value) {
  return value.to_string();
}

Json field_to_json(const std::vector<std::string>& value) {
  return Json::Array(value.begin(), value.end());
}

Json field_to_json(const std::vector<std::int64_t>& value) {
  return Json::Array(value.begin(), value.end());
}

Json field_to_json(const StringMap& value) {
  return map_to_json(value);
}

Json field_to_json(const ResourceList& value) {
  return map_to_json(value);
}

Json field_to_json(const Json& value) {
  return value;
}

}  // namespace spillway::api
