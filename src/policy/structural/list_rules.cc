#include "policy/structural/list_rules.h"

#include "policy/structural/node.h"
#include "policy/structural/value_path.h"

#include <map>
#include <string>
#include <vector>

namespace spillway::structural {

namespace {

using api::Json;

/// Reports equal values, compared as they are written: 1 and 1.0 differ.
void report_duplicates(const std::vector<Json>& values, const ValuePath& path, api::FieldErrors& errors) {
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < values.size() && !errors.full(); ++i) {
    if (++seen[api::to_text(values[i])] == 2) errors.duplicate(path.element(i).field(), values[i]);
  }
}

void check_map(const Node& node, const Json::Array& list, const ValuePath& path, api::FieldErrors& errors) {
  std::vector<Json> keys;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_object() && !list[i].is_null()) {
      return errors.invalid(path.element(i).field(), list[i], "must be an object for an array of list-type map");
    }
    Json own = Json::object();
    for (const std::string& key : node.list_keys) {
      if (const Json* value = list[i].find(key)) own[key] = *value;
    }
    keys.push_back(std::move(own));
  }
  report_duplicates(keys, path, errors);
}

void check_below(const Node& node, const Json& value, const ValuePath& path, api::FieldErrors& errors) {
  if (!node.has_lists || errors.full()) return;
  if (const Json::Object* object = value.if_object()) {
    for (const auto& [name, member] : *object) {
      if (const Node* property = node.property(name)) {
        check_below(*property, member, path.member(name), errors);
      } else if (node.entries != nullptr) {
        check_below(*node.entries, member, path.entry(name), errors);
      }
    }
    return;
  }
  const Json::Array* list = value.if_array();
  if (list == nullptr) return;
  if (node.list_type == ListType::kSet) report_duplicates(*list, path, errors);
  if (node.list_type == ListType::kMap) check_map(node, *list, path, errors);
  for (std::size_t i = 0; i < list->size() && node.items != nullptr; ++i) {
    check_below(*node.items, (*list)[i], path.element(i), errors);
  }
}

}  // namespace

void check_lists(const Node& root, const Json& object, api::FieldErrors& errors) {
  check_below(root, object, ValuePath(), errors);
}

}  // namespace spillway::structural
