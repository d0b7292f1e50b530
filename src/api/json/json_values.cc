#include "api/json/json_values.h"

#include "base/heap_size.h"

namespace spillway::api {

std::int64_t integer_at(const Json& document, std::initializer_list<std::string_view> path, std::int64_t absent) {
  const Json* value = document.at(path);
  return value == nullptr ? absent : value->if_int64().value_or(absent);
}

std::size_t tree_bytes(const Json& document) {
  constexpr std::size_t kHolders = 8;  // the count beside a list or object
  if (const std::string* text = document.if_string()) return text_bytes(*text);
  std::size_t bytes = 0;
  const Json::Array* list = document.if_array();
  const Json::Object* object = document.if_object();
  if (list != nullptr && !list->empty()) {  // empty ones have no block
    bytes += block_bytes(kHolders + sizeof(Json::Array)) + block_bytes(list->capacity() * sizeof(Json));
    for (const Json& element : *list) bytes += tree_bytes(element);
  } else if (object != nullptr && !object->empty()) {
    bytes += block_bytes(kHolders + sizeof(Json::Object)) + block_bytes(object->size() * sizeof(JsonObject::Member));
    for (const auto& [key, value] : *object) bytes += text_bytes(key) + tree_bytes(value);
  }
  return bytes;
}

std::vector<std::string> strings_at(const Json& document, std::initializer_list<std::string_view> path) {
  std::vector<std::string> out;
  const Json* list = document.at(path);
  if (list == nullptr || list->if_array() == nullptr) return out;
  for (const Json& element : *list->if_array()) out.emplace_back(element.string_at({}));
  return out;
}

}  // namespace spillway::api
