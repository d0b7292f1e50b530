// Members of a document as advice reads them: an absent list is an empty one, null is absent.
// Thread: any.
#pragma once

#include "api/json/json.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace spillway::apiserver::kinds {

inline bool is_given(const api::Json* value) {
  return value != nullptr && !value->is_null();
}

inline const api::Json::Array& list_at(const api::Json& object, std::initializer_list<std::string_view> path) {
  static const api::Json::Array kNone;
  const api::Json* found = object.at(path);
  const api::Json::Array* elements = found == nullptr ? nullptr : found->if_array();
  return elements == nullptr ? kNone : *elements;
}

/// 0 if it is absent or no whole number.
inline std::int64_t number_at(const api::Json& object, std::initializer_list<std::string_view> path) {
  const api::Json* found = object.at(path);
  return found == nullptr ? 0 : found->if_int64().value_or(0);
}

}  // namespace spillway::apiserver::kinds
