#include "api/schema/shape.h"

#include <algorithm>
#include <limits>

namespace spillway::api {
namespace {

bool fits_int32(const Json& value) {
  const auto number = value.if_int64();
  return number && *number >= std::numeric_limits<std::int32_t>::min() &&
         *number <= std::numeric_limits<std::int32_t>::max();
}

bool are_strings(const Json& value) {
  const Json::Array* items = value.if_array();
  return items != nullptr && std::ranges::all_of(*items, [](const Json& item) { return item.is_string(); });
}

bool fits(const Field& field, const Json& value) {
  if (value.is_null()) return true;
  switch (field.kind) {
    case ValueKind::kString:
    case ValueKind::kBytes:
    case ValueKind::kTime:
    case ValueKind::kMicroTime:
      return value.is_string();
    case ValueKind::kBool:
      return value.is_bool();
    case ValueKind::kInt32:
      return fits_int32(value);
    case ValueKind::kInt64:
      return value.if_int64().has_value();
    case ValueKind::kQuantity:
      return value.is_string() || value.if_int64().has_value();
    case ValueKind::kIntOrString:
      return value.is_string() || fits_int32(value);
    case ValueKind::kNumber:
      return value.is_number();
    case ValueKind::kRawJson:
      return true;
    case ValueKind::kStrings:
      return are_strings(value);
    case ValueKind::kMessage:
      return (field.or_other && !value.is_object()) || has_shape(*field.message, value);
  }
  return false;
}

bool field_fits(const Field& field, const Json& value) {
  if (value.is_null()) return true;
  switch (field.shape) {
    case Shape::kSingle:
      return fits(field, value);
    case Shape::kList:
      return value.if_array() != nullptr &&
             std::ranges::all_of(*value.if_array(), [&](const Json& item) { return fits(field, item); });
    case Shape::kMap:
      return value.if_object() != nullptr &&
             std::ranges::all_of(*value.if_object(), [&](const auto& entry) { return fits(field, entry.value); });
  }
  return false;
}

}  // namespace

bool has_shape(const Type& type, const Json& document) {
  const Json::Object* object = document.if_object();
  if (object == nullptr) return false;
  const auto fields = type.json_fields();
  auto next = fields.begin();  // both are sorted: one walk
  for (const auto& [key, value] : *object) {
    if (type.has_type_meta() && (key == "apiVersion" || key == "kind")) {
      if (!value.is_string()) return false;
      continue;
    }
    while (next != fields.end() && next->first < key) ++next;
    if (next == fields.end() || next->first != key || !field_fits(*next->second, value)) return false;
    if (next->second->omit_zero && value.is_null()) return false;
  }
  return true;
}

}  // namespace spillway::api
