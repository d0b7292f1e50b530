#include "apiserver/kinds/cells.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "base/elapsed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace spillway::apiserver::kinds {

namespace {

std::string joined_members(const api::Json* list, std::string_view member) {
  std::string text;
  if (list == nullptr || list->if_array() == nullptr) return text;
  bool first = true;
  for (const api::Json& element : *list->if_array()) {
    if (!first) text += ',';
    first = false;
    text += element.string_at({member});
  }
  return text;
}

std::vector<std::string_view> texts(const api::Json* list) {
  std::vector<std::string_view> found;
  if (list == nullptr || list->if_array() == nullptr) return found;
  for (const api::Json& element : *list->if_array()) {
    if (const std::string* text = element.if_string()) found.push_back(*text);
  }
  return found;
}

std::string expression_text(const api::Json& expression) {
  const std::string_view key = expression.string_at({"key"});
  const std::string_view op = expression.string_at({"operator"});
  std::vector<std::string_view> sorted = texts(expression.find("values"));
  std::sort(sorted.begin(), sorted.end());
  const std::string values = fmt::format("({})", fmt::join(sorted, ","));
  if (op == "In") return fmt::format("{} in {}", key, values);
  if (op == "NotIn") return fmt::format("{} notin {}", key, values);
  if (op == "DoesNotExist") return fmt::format("!{}", key);
  return std::string(key);
}

}  // namespace

std::string age_since(const api::Json* time, WallTime now) {
  const std::string* text = time != nullptr ? time->if_string() : nullptr;
  if (text == nullptr) return std::string(kUnknown);
  const auto at = api::parse_time(*text);
  if (!at) return std::string(kUnknown);
  return api::human_duration(elapsed(*at, now));
}

std::string age_of(const api::Json& object, WallTime now) {
  return age_since(object.at({"metadata", "creationTimestamp"}), now);
}

std::string or_else(std::string_view text, std::string_view otherwise) {
  return std::string(text.empty() ? otherwise : text);
}

std::string_view name_of(const api::Json& object) {
  return object.string_at({"metadata", "name"});
}

std::int64_t size_at(const api::Json& object, std::string_view key) {
  const api::Json* found = object.find(key);
  if (found == nullptr) return 0;
  if (const api::Json::Object* members = found->if_object()) return static_cast<std::int64_t>(members->size());
  if (const api::Json::Array* elements = found->if_array()) return static_cast<std::int64_t>(elements->size());
  return 0;
}

std::string false_unless_set(const api::Json& object, std::initializer_list<std::string_view> path) {
  const api::Json* value = object.at(path);
  return value != nullptr && value->if_bool().value_or(false) ? "true" : "false";
}

std::int64_t count_at(const api::Json& object, std::initializer_list<std::string_view> path) {
  const api::Json* found = object.at(path);
  return found != nullptr ? found->if_int64().value_or(0) : 0;
}

std::string label_text(const api::Json* labels) {
  if (labels == nullptr || labels->if_object() == nullptr || labels->if_object()->empty()) return std::string(kNone);
  std::vector<std::string> pairs;
  for (const auto& [key, value] : *labels->if_object()) {
    pairs.push_back(fmt::format("{}={}", key, value.if_string() != nullptr ? *value.if_string() : std::string()));
  }
  return fmt::format("{}", fmt::join(pairs, ","));
}

std::string selector_text(const api::Json* selector) {
  if (selector == nullptr || !selector->is_object()) return std::string(kNone);
  std::vector<std::string> parts;
  if (const api::Json* labels = selector->find("matchLabels");
      labels != nullptr && labels->if_object() != nullptr && !labels->if_object()->empty()) {
    parts.push_back(label_text(labels));
  }
  if (const api::Json* expressions = selector->find("matchExpressions");
      expressions != nullptr && expressions->if_array() != nullptr) {
    for (const api::Json& expression : *expressions->if_array()) parts.push_back(expression_text(expression));
  }
  return parts.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(parts, ","));
}

std::string container_names(const api::Json* pod_spec) {
  return pod_spec != nullptr ? joined_members(pod_spec->find("containers"), "name") : "";
}

std::string container_images(const api::Json* pod_spec) {
  return pod_spec != nullptr ? joined_members(pod_spec->find("containers"), "image") : "";
}

}  // namespace spillway::apiserver::kinds
