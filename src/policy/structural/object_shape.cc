#include "policy/structural/object_shape.h"

#include "api/exchange/status.h"
#include "api/json/document_bounds.h"
#include "api/schema/schema.h"
#include "policy/structural/node.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace spillway::structural {

namespace {

using api::Json;

bool is_type_or_metadata(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

/// The schema of a value, or its built-in type, which overrides the schema.
struct Known {
  const Node* node = nullptr;           // null: unknown
  bool resource = false;                // kind, apiVersion and metadata are kept
  bool keeps = false;                   // unknown members are kept
  const api::Type* metadata = nullptr;  // a resource's metadata has the fields of this type; null: any
  const api::Type* built_in = nullptr;  // in place of `node`
};

const api::Type* object_meta() {
  static const api::Type* const kType = api::find_type("meta/v1.ObjectMeta");
  return kType;
}

Known known_by(const Node* node) {
  if (node == nullptr) return {};
  return {.node = node,
          .resource = node->embedded,
          .keeps = node->keeps_unknown,
          .metadata = node->embedded ? object_meta() : nullptr};
}

class Pruner {
 public:
  std::vector<std::string> take_dropped() {
    std::ranges::sort(dropped_);
    return std::move(dropped_);
  }

  /// False: nothing has to be removed, and the document was not changed. A shared document stays shared then.
  bool has_surplus(const Known& known, const Json& value) const {
    if (const Json::Object* object = value.if_object()) {
      return std::ranges::any_of(*object, [&](const auto& member) {
        const Step step = step_of(known, member.key);
        return step.drops || (step.goes_on && has_surplus(step.known, member.value));
      });
    }
    const Json::Array* list = value.if_array();
    if (list == nullptr) return false;
    const std::optional<Known> items = items_of(known);
    return items && std::ranges::any_of(*list, [&](const Json& each) { return has_surplus(*items, each); });
  }

  void prune(const Known& known, Json& value, const std::string& path) {
    if (!has_surplus(known, value)) return;
    if (value.is_array()) return prune_list(known, value, path);
    std::vector<std::string> surplus;
    for (auto& [name, member] : *value.if_object()) {
      const Step step = step_of(known, name);
      const std::string at = path.empty() ? name : path + "." + name;
      if (step.drops) {
        surplus.push_back(name);
        if (dropped_.size() < api::kComplaintsMax) dropped_.push_back(api::complaint_path(at));
      } else if (step.goes_on) {
        prune(step.known, member, at);
      }
    }
    for (const std::string& name : surplus) value.if_object()->erase(name);
  }

 private:
  /// The treatment of one member during a walk.
  struct Step {
    bool drops = false;
    bool goes_on = false;
    Known known = {};
  };

  static Step step_of(const Known& known, std::string_view name) {
    if (known.built_in != nullptr) return step_of(*known.built_in, name);
    if (known.resource && is_type_or_metadata(name)) {
      if (name != "metadata" || known.metadata == nullptr) return {};
      return {.goes_on = true, .known = {.built_in = known.metadata}};
    }
    const Node* node = known.node;
    if (node == nullptr) return {.drops = true};
    if (const Node* property = node->property(name)) return {.goes_on = true, .known = known_by(property)};
    if (node->additional != Additional::kUnset) return {.goes_on = true, .known = known_by(node->entries.get())};
    return {.drops = !known.keeps};
  }

  static Step step_of(const api::Type& type, std::string_view name) {
    const api::Field* field = type.find(name);
    if (field == nullptr) return {.drops = true};
    if (field->kind != api::ValueKind::kMessage || field->shape == api::Shape::kMap) return {};
    return {.goes_on = true, .known = {.built_in = field->message}};
  }

  /// nullopt: elements are not pruned.
  static std::optional<Known> items_of(const Known& known) {
    if (known.built_in != nullptr) return known;
    const Node* items = known.node == nullptr ? nullptr : known.node->items.get();
    if (items == nullptr && known.keeps) return std::nullopt;
    Known of_items = known_by(items);
    of_items.keeps = of_items.keeps || known.keeps;
    return of_items;
  }

  void prune_list(const Known& known, Json& value, const std::string& path) {
    const std::optional<Known> items = items_of(known);
    Json::Array& list = *value.if_array();
    for (std::size_t i = 0; i < list.size() && items; ++i) prune(*items, list[i], api::index_path(path, i));
  }

  std::vector<std::string> dropped_;
};

/// True if the value may not be null and has no default to replace it.
bool is_plain(const Node* node) {
  return node != nullptr && !node->nullable && node->default_value.is_null();
}

bool has_stray_null(const Node* node, const Json& value) {
  if (const Json::Object* object = value.if_object()) {
    return std::ranges::any_of(*object, [&](const auto& member) {
      const Node* own = node == nullptr ? nullptr : node->member(member.key);
      return (member.value.is_null() && is_plain(own)) || has_stray_null(own, member.value);
    });
  }
  const Json::Array* list = value.if_array();
  if (list == nullptr) return false;
  const Node* items = node == nullptr ? nullptr : node->items.get();
  return std::ranges::any_of(*list, [&](const Json& each) { return has_stray_null(items, each); });
}

void drop_nulls(const Node* node, Json& value) {
  if (!has_stray_null(node, value)) return;
  if (value.is_array()) {
    const Node* items = node == nullptr ? nullptr : node->items.get();
    for (Json& each : *value.if_array()) drop_nulls(items, each);
    return;
  }
  std::vector<std::string> stray;
  for (auto& [name, member] : *value.if_object()) {
    const Node* own = node == nullptr ? nullptr : node->member(name);
    if (member.is_null() && is_plain(own)) {
      stray.push_back(name);
    } else {
      drop_nulls(own, member);
    }
  }
  for (const std::string& name : stray) value.if_object()->erase(name);
}

bool wants_default(const Node& node, const Json* value) {
  if (node.default_value.is_null()) return false;
  return value == nullptr || (value->is_null() && !node.nullable);
}

/// Computes the missing defaults up to a size. Visits the object and inserted defaults only, so that a schema with many
/// properties costs no more.
class Missing {
 public:
  explicit Missing(std::size_t bytes_max) : left_(bytes_max) {}

  /// False: the value does not match the schema.
  bool fits(const Node& node, const Json& value) {
    if (!node.has_defaults) return true;
    if (const Json::Object* object = value.if_object()) return members_fit(node, *object);
    const Json::Array* list = value.if_array();
    return list == nullptr || node.items == nullptr ||
           std::ranges::all_of(*list, [&](const Json& each) { return entry_fits(*node.items, each); });
  }

 private:
  bool members_fit(const Node& node, const Json::Object& object) {
    for (const std::size_t place : node.filled) {
      const Property& property = node.properties[place];
      const bool wants = wants_default(property.node, object.find(property.name));
      if (wants && !default_fits(property.node, property.name.size())) return false;
    }
    return std::ranges::all_of(object, [&](const auto& member) {
      if (const Node* property = node.property(member.key)) return fits(*property, member.value);
      return node.entries == nullptr || entry_fits(*node.entries, member.value);
    });
  }

  bool entry_fits(const Node& node, const Json& value) {
    return wants_default(node, &value) ? default_fits(node, 0) : fits(node, value);
  }

  bool default_fits(const Node& node, std::size_t name_bytes) {
    const std::size_t bytes = kFillBytes + name_bytes + node.default_bytes;
    if (bytes > left_) return false;
    left_ -= bytes;
    return fits(node, node.default_value);
  }

  std::size_t left_;
};

/// True if a value with a default is missing.
bool lacks_default(const Node& node, const Json& value) {
  return !Missing(0).fits(node, value);
}

void fill_in(const Node& node, Json& value);

void fill_in_at(const Node& node, Json& value) {
  if (wants_default(node, &value)) value = node.default_value;
  fill_in(node, value);
}

void fill_in(const Node& node, Json& value) {
  if (!lacks_default(node, value)) return;
  if (Json::Object* object = value.if_object()) {
    for (const std::size_t place : node.filled) {
      const Property& property = node.properties[place];
      if (wants_default(property.node, std::as_const(*object).find(property.name))) {
        (*object)[property.name] = property.node.default_value;
      }
    }
    for (auto& [name, member] : *object) {
      if (const Node* property = node.property(name)) {
        fill_in(*property, member);
      } else if (node.entries != nullptr) {
        fill_in_at(*node.entries, member);
      }
    }
  } else if (Json::Array* list = value.if_array()) {
    for (Json& each : *list) fill_in_at(*node.items, each);
  }
}

}  // namespace

std::vector<std::string> prune(const Schema& schema, Json& object) {
  Pruner pruner;
  Known root = known_by(&schema.root());
  root.resource = true;
  pruner.prune(root, object, "");
  return pruner.take_dropped();
}

std::vector<std::string> prune_value(const Node& node, Json& value) {
  Pruner pruner;
  pruner.prune(known_by(&node), value, "");
  return pruner.take_dropped();
}

bool defaults_fit(const Schema& schema, const Json& object) {
  return Missing(kDefaultBytesMax).fits(schema.root(), object);
}

void apply_defaults(const Schema& schema, Json& object) {
  drop_nulls(&schema.root(), object);
  if (defaults_fit(schema, object)) fill_in(schema.root(), object);
}

}  // namespace spillway::structural
