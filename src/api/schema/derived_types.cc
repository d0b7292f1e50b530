#include "api/schema/derived_types.h"

#include <algorithm>
#include <utility>

namespace spillway::api {

const Type& DerivedTypes::make(DerivedType wanted) {
  Type& type = types_.emplace_back();
  type.name_ = keep(std::move(wanted.name));
  type.api_version_ = keep(std::move(wanted.api_version));
  type.kind_ = keep(std::move(wanted.kind));
  type.atomic_ = wanted.atomic;
  type.json_only_ = true;
  type.open_ = wanted.open;
  type.derived_ = true;
  type.trim_ = std::move(wanted.trim);
  type.fields_.reserve(wanted.fields.size());
  for (DerivedField& from : wanted.fields) {
    Field field;
    field.number = static_cast<std::uint32_t>(type.fields_.size() + 1);
    field.name = keep(std::move(from.name));
    field.shape = from.shape;
    field.kind = from.kind;
    field.message = from.message;
    field.or_other = from.kind == ValueKind::kMessage && from.message->derived();
    field.pointer = true;
    field.list_type = from.list_type;
    for (std::string& key : from.list_keys) field.list_keys.push_back(keep(std::move(key)));
    field.atomic = from.atomic;
    type.fields_.push_back(std::move(field));
  }
  for (const Field& field : type.fields_) {
    type.json_fields_.emplace_back(field.name, &field);
    type.wire_fields_.push_back(&field);
  }
  std::ranges::sort(type.json_fields_);
  return type;
}

}  // namespace spillway::api
