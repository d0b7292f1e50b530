#include "apiserver/resource/field_types.h"

#include "policy/structural/node.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using structural::Additional;
using structural::Node;
using structural::ValueType;

class FieldTypes {
 public:
  explicit FieldTypes(api::DerivedTypes& types) : types_(types) {}

  std::vector<api::DerivedField> members_of(const Node& node) {
    std::vector<api::DerivedField> fields;
    fields.reserve(node.properties.size());
    for (const structural::Property& property : node.properties) {
      fields.push_back(field_of(property.name, property.node));
    }
    return fields;
  }

  /// Members that no schema names may be there.
  static bool is_open(const Node& node) {
    return node.keeps_unknown || node.embedded || node.additional == Additional::kAllowed;
  }

 private:
  api::DerivedField field_of(std::string name, const Node& node) {
    api::DerivedField field{.name = std::move(name)};
    if (node.type == ValueType::kArray) {
      if (node.list_type == structural::ListType::kSet) {
        field.shape = api::Shape::kList;
        field.list_type = api::ListType::kSet;
      } else if (node.list_type == structural::ListType::kMap && node.items != nullptr) {
        field.shape = api::Shape::kList;
        field.list_type = api::ListType::kMap;
        field.list_keys = node.list_keys;
        set_message(field, *node.items);
      }
      return field;
    }
    if (node.type == ValueType::kObject && node.properties.empty() && node.entries != nullptr) {
      field.shape = api::Shape::kMap;
      if (is_message(*node.entries)) set_message(field, *node.entries);
    } else if (is_message(node)) {
      set_message(field, node);
    }
    field.atomic = node.atomic_map;
    return field;
  }

  static bool is_message(const Node& node) {
    if (node.int_or_string) return false;
    return node.type == ValueType::kObject || (node.type == ValueType::kAny && node.keeps_unknown);
  }

  void set_message(api::DerivedField& field, const Node& node) {
    field.kind = api::ValueKind::kMessage;
    field.message = &types_.make({.name = {},
                                  .fields = members_of(node),
                                  .open = is_open(node) || node.entries != nullptr,
                                  .atomic = node.atomic_map});
  }

  api::DerivedTypes& types_;
};

}  // namespace

const api::Type& field_type(const structural::Schema& schema, std::string api_version, std::string kind,
                            api::DerivedTypes& types) {
  FieldTypes made(types);
  const Node& root = schema.root();
  std::vector<api::DerivedField> fields = made.members_of(root);
  std::erase_if(fields, [](const api::DerivedField& field) {
    return field.name == "apiVersion" || field.name == "kind" || field.name == "metadata";
  });
  fields.push_back(
      {.name = "metadata", .kind = api::ValueKind::kMessage, .message = api::find_type("meta/v1.ObjectMeta")});
  return types.make({.name = kind,
                     .api_version = std::move(api_version),
                     .kind = kind,
                     .fields = std::move(fields),
                     .open = FieldTypes::is_open(root)});
}

}  // namespace spillway::apiserver
