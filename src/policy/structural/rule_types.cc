#include "policy/structural/rule_types.h"

#include "policy/structural/rule_values.h"

#include <utility>
#include <vector>

namespace spillway::structural {

namespace {

using cel::Type;
using cel::TypeKind;

Type text_type(Format format) {
  if (format == Format::kByte) return {.kind = TypeKind::kBytes};
  if (format == Format::kDuration) return {.kind = TypeKind::kDuration};
  const bool time = format == Format::kDate || format == Format::kDateTime;
  return {.kind = time ? TypeKind::kTimestamp : TypeKind::kString};
}

void add_type_and_metadata(std::vector<std::pair<std::string, Type>>& members, const std::string& name) {
  std::erase_if(members, [](const auto& member) {
    return member.first == "kind" || member.first == "apiVersion" || member.first == "metadata";
  });
  const Type text{.kind = TypeKind::kString};
  members.emplace_back("kind", text);
  members.emplace_back("apiVersion", text);
  members.emplace_back("metadata", cel::object_of(name + ".metadata", {{"name", text}, {"generateName", text}}));
}

}  // namespace

RuleTypes::RuleTypes(const Node& root, bool resource, const std::string& name) {
  visit(root, name, resource);
}

const Type* RuleTypes::of(const Node& node) const {
  const auto found = known_.find(&node);
  return found == known_.end() || !found->second.type ? nullptr : &*found->second.type;
}

const std::string& RuleTypes::name_of(const Node& node) const {
  static const std::string kNone;
  const auto found = known_.find(&node);
  return found == known_.end() ? kNone : found->second.name;
}

std::optional<Type> RuleTypes::visit(const Node& node, const std::string& name, bool resource) {
  std::optional<Type> items;
  std::optional<Type> made;
  if (node.items != nullptr) items = visit(*node.items, name + ".@idx", node.items->embedded);
  if (node.int_or_string) {
    object(node, name, resource);
    made = Type{};
  } else {
    switch (node.type) {
      case ValueType::kAny:
        object(node, name, resource);
        break;
      case ValueType::kArray:
        if (items) made = cel::list_of(*std::move(items));
        break;
      case ValueType::kBoolean:
        made = Type{.kind = TypeKind::kBool};
        break;
      case ValueType::kInteger:
        made = Type{.kind = TypeKind::kInt};
        break;
      case ValueType::kNumber:
        made = Type{.kind = TypeKind::kDouble};
        break;
      case ValueType::kString:
        made = text_type(node.format);
        break;
      case ValueType::kObject:
        made = object(node, name, resource);
        break;
    }
  }
  known_[&node] = {.type = made, .name = name};
  return made;
}

std::optional<Type> RuleTypes::object(const Node& node, const std::string& name, bool resource) {
  std::optional<Type> entries;
  if (node.entries != nullptr) entries = visit(*node.entries, name + ".@elem", node.entries->embedded);
  std::vector<std::pair<std::string, Type>> members;
  for (const Property& property : node.properties) {
    const std::string escaped = escaped_name(property.name);
    std::optional<Type> type = visit(property.node, name + "." + escaped, property.node.embedded);
    if (type && !escaped.empty()) members.emplace_back(escaped, *std::move(type));
  }
  if (node.entries != nullptr) {
    if (!entries) return std::nullopt;
    return cel::map_of(Type{.kind = TypeKind::kString}, *std::move(entries));
  }
  if (resource) add_type_and_metadata(members, name);
  return cel::object_of(name, std::move(members));
}

}  // namespace spillway::structural
