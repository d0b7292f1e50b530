#include "policy/structural/embedded_rules.h"

#include "api/text/names.h"
#include "base/ascii.h"
#include "policy/structural/node.h"
#include "policy/structural/value_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

namespace spillway::structural {

namespace {

using api::Json;

class EmbeddedRules {
 public:
  EmbeddedRules(std::string_view prefix, api::FieldErrors& errors) : prefix_(prefix), errors_(errors) {}

  void check(const Node& node, const Json& value, const ValuePath& path) {
    if (!node.has_embedded || errors_.full()) return;
    if (const Json::Object* object = value.if_object()) {
      if (node.embedded) check_resource(value, path);
      for (const auto& [name, member] : *object) {
        if (const Node* property = node.property(name)) {
          check(*property, member, path.member(name));
        } else if (node.entries != nullptr) {
          check(*node.entries, member, path.entry(name));
        }
      }
    } else if (const Json::Array* list = value.if_array(); list != nullptr && node.items != nullptr) {
      for (std::size_t i = 0; i < list->size(); ++i) check(*node.items, (*list)[i], path.element(i));
    }
  }

 private:
  std::string field(const ValuePath& path) const {
    if (prefix_.empty()) return path.field();
    const std::string below = path.field();
    return below.empty() ? std::string(prefix_) : fmt::format("{}.{}", prefix_, below);
  }

  void check_resource(const Json& resource, const ValuePath& path) {
    check_text(resource, path.member("apiVersion"), "apiVersion", [this](const std::string& at, const Json& value) {
      const std::string& text = *value.if_string();
      if (std::ranges::count(text, '/') > 1) {
        errors_.invalid(at, value, fmt::format("unexpected GroupVersion string: {}", text));
      }
    });
    check_text(resource, path.member("kind"), "kind", [this](const std::string& at, const Json& value) {
      const auto problems = api::dns1035_label_errors(lower_case(*value.if_string()));
      if (problems.empty()) return;
      errors_.invalid(at, value,
                      fmt::format("may have mixed case, but should otherwise match: {}", fmt::join(problems, ",")));
    });
    if (const Json* metadata = resource.find("metadata")) check_metadata(*metadata, path.member("metadata"));
  }

  template <typename Check>
  void check_text(const Json& resource, const ValuePath& path, std::string_view name, Check check) {
    const Json* value = resource.find(name);
    if (value == nullptr) return errors_.required(field(path), "must not be empty");
    if (!value->is_string()) return errors_.invalid(field(path), *value, "must be a string");
    if (value->if_string()->empty()) return errors_.required(field(path), "must not be empty");
    check(field(path), *value);
  }

  void check_metadata(const Json& metadata, const ValuePath& path) {
    if (!metadata.is_object()) {
      return errors_.invalid(field(path), metadata,
                             fmt::format("must be an object, not {}", api::type_phrase(metadata)));
    }
    for (const std::string_view name : {"name", "generateName", "namespace", "uid", "resourceVersion"}) {
      const Json* value = metadata.find(name);
      if (value == nullptr || value->is_null() || value->is_string()) continue;
      errors_.invalid(field(path.member(name)), *value, "must be a string");
    }
    if (const std::string_view name = metadata.string_at({"name"}); !name.empty()) {
      for (const std::string& problem : api::path_segment_errors(name)) {
        errors_.invalid(field(path.member("name")), Json(name), problem);
      }
    }
    check_map(metadata, "labels", path.member("labels"), /*labels=*/true);
    check_map(metadata, "annotations", path.member("annotations"), /*labels=*/false);
  }

  void check_map(const Json& metadata, std::string_view name, const ValuePath& path, bool labels) {
    const Json* map = metadata.find(name);
    if (map == nullptr || map->is_null()) return;
    if (!map->is_object()) return errors_.invalid(field(path), *map, "must be an object of strings");
    for (const auto& [key, value] : *map->if_object()) {
      if (errors_.full()) return;
      if (!value.is_string()) {
        errors_.invalid(field(path.entry(key)), value, "must be a string");
        continue;
      }
      for (const std::string& problem : api::qualified_name_errors(labels ? key : lower_case(key))) {
        errors_.invalid(field(path), Json(key), problem);
      }
      if (!labels) continue;
      for (const std::string& problem : api::label_value_errors(*value.if_string())) {
        errors_.invalid(field(path), value, problem);
      }
    }
  }

  std::string_view prefix_;
  api::FieldErrors& errors_;
};

}  // namespace

void check_embedded(const Node& node, const Json& value, std::string_view prefix, api::FieldErrors& errors) {
  EmbeddedRules(prefix, errors).check(node, value, ValuePath());
}

}  // namespace spillway::structural
