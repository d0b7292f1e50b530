#include "api/json/json_values.h"

namespace spillway::api {

std::int64_t integer_at(const Json& document, std::initializer_list<std::string_view> path, std::int64_t absent) {
  const Json* value = document.at(path);
  return value == nullptr ? absent : value->if_int64().value_or(absent);
}

std::vector<std::string> strings_at(const Json& document, std::initializer_list<std::string_view> path) {
  std::vector<std::string> out;
  const Json* list = document.at(path);
  if (list == nullptr || list->if_array() == nullptr) return out;
  for (const Json& element : *list->if_array()) out.emplace_back(element.string_at({}));
  return out;
}

}  // namespace spillway::api
