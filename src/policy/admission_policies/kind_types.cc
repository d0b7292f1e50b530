#include "policy/admission_policies/kind_types.h"

#include "policy/structural/rule_types.h"
#include "policy/structural/rule_values.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::admission_policies {

namespace {

using cel::Type;
using cel::TypeKind;

class KindTypes {
 public:
  Type object(const api::Type& message, const std::string& name) {
    if (message.open() || std::ranges::find(within_, &message) != within_.end()) return {};
    within_.push_back(&message);
    std::vector<std::pair<std::string, Type>> members;
    if (message.has_type_meta()) {
      members.emplace_back("apiVersion", Type{.kind = TypeKind::kString});
      members.emplace_back("kind", Type{.kind = TypeKind::kString});
    }
    for (const auto& [json_name, field] : message.json_fields()) {
      std::string escaped = structural::escaped_name(json_name);
      if (escaped.empty()) continue;
      std::optional<Type> type = member(*field, name + "." + escaped);
      if (type) members.emplace_back(std::move(escaped), *std::move(type));
    }
    within_.pop_back();
    return cel::object_of(name, std::move(members));
  }

 private:
  std::optional<Type> member(const api::Field& field, const std::string& name) {
    switch (field.shape) {
      case api::Shape::kSingle:
        return value(field, name);
      case api::Shape::kList: {
        std::optional<Type> element = value(field, name + ".@idx");
        return element ? std::optional(cel::list_of(*std::move(element))) : std::nullopt;
      }
      case api::Shape::kMap: {
        std::optional<Type> element = value(field, name + ".@elem");
        if (!element) return std::nullopt;
        return cel::map_of(Type{.kind = TypeKind::kString}, *std::move(element));
      }
    }
    return std::nullopt;
  }

  std::optional<Type> value(const api::Field& field, const std::string& name) {
    switch (field.kind) {
      case api::ValueKind::kString:
        return Type{.kind = TypeKind::kString};
      case api::ValueKind::kBool:
        return Type{.kind = TypeKind::kBool};
      case api::ValueKind::kInt32:
      case api::ValueKind::kInt64:
        return Type{.kind = TypeKind::kInt};
      case api::ValueKind::kBytes:
        return Type{.kind = TypeKind::kBytes};
      case api::ValueKind::kTime:
      case api::ValueKind::kMicroTime:
        return Type{.kind = TypeKind::kTimestamp};
      case api::ValueKind::kQuantity:
        return std::nullopt;
      case api::ValueKind::kIntOrString:
      case api::ValueKind::kRawJson:
        return Type{};
      case api::ValueKind::kNumber:
        return Type{.kind = TypeKind::kDouble};
      case api::ValueKind::kStrings:
        return cel::list_of(Type{.kind = TypeKind::kString});
      case api::ValueKind::kMessage:
        return field.or_other ? Type{} : object(*field.message, name);
    }
    return std::nullopt;
  }

  std::vector<const api::Type*> within_;  // the messages that contain the present one
};

}  // namespace

Type object_type(const api::Type& kind, const std::string& name) {
  return KindTypes().object(kind, name);
}

std::optional<Type> object_type(const structural::Schema& schema, const std::string& name) {
  const structural::RuleTypes types(schema.root(), true, name);
  const Type* type = types.of(schema.root());
  return type == nullptr ? std::nullopt : std::optional(*type);
}

}  // namespace spillway::admission_policies
