// Members of a schema document by their names; a member of another type counts as absent. Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "api/json/json_values.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::structural {

inline bool flag(const api::Json& schema, std::string_view name) {
  const api::Json* value = schema.find(name);
  return value != nullptr && value->if_bool().value_or(false);
}

/// True if the member exists and is not null.
inline bool has_member(const api::Json& schema, std::string_view name) {
  const api::Json* value = schema.find(name);
  return value != nullptr && !value->is_null();
}

inline std::vector<std::string> texts(const api::Json& schema, std::string_view name) {
  return api::strings_at(schema, {name});
}

}  // namespace spillway::structural
