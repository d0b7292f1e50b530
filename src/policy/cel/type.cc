#include "policy/cel/type.h"

#include "base/check.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

constexpr std::array<std::string_view, 33> kNames{"dyn",
                                                  "null",
                                                  "bool",
                                                  "int",
                                                  "uint",
                                                  "double",
                                                  "string",
                                                  "bytes",
                                                  "list",
                                                  "map",
                                                  "timestamp",
                                                  "duration",
                                                  "type",
                                                  "kubernetes.authorization.Authorizer",
                                                  "kubernetes.authorization.PathCheck",
                                                  "kubernetes.authorization.GroupCheck",
                                                  "kubernetes.authorization.ResourceCheck",
                                                  "kubernetes.authorization.Decision",
                                                  "kubernetes.AdmissionRequest",
                                                  "kubernetes.GroupVersionKind",
                                                  "kubernetes.GroupVersionResource",
                                                  "kubernetes.UserInfo",
                                                  "A",
                                                  "B",
                                                  "object",
                                                  "kubernetes.Quantity",
                                                  "kubernetes.URL",
                                                  "net.IP",
                                                  "net.CIDR",
                                                  "kubernetes.NamedFormat",
                                                  "optional_type",
                                                  "dyn",
                                                  "!error!"};

struct Field {
  TypeKind message;
  std::string_view name;
  std::string_view type;
};

constexpr std::array<Field, 22> kFields{{
    {TypeKind::kRequest, "kind", "kubernetes.GroupVersionKind"},
    {TypeKind::kRequest, "resource", "kubernetes.GroupVersionResource"},
    {TypeKind::kRequest, "subResource", "string"},
    {TypeKind::kRequest, "requestKind", "kubernetes.GroupVersionKind"},
    {TypeKind::kRequest, "requestResource", "kubernetes.GroupVersionResource"},
    {TypeKind::kRequest, "requestSubResource", "string"},
    {TypeKind::kRequest, "name", "string"},
    {TypeKind::kRequest, "namespace", "string"},
    {TypeKind::kRequest, "operation", "string"},
    {TypeKind::kRequest, "userInfo", "kubernetes.UserInfo"},
    {TypeKind::kRequest, "dryRun", "bool"},
    {TypeKind::kRequest, "options", "dyn"},
    {TypeKind::kGroupVersionKind, "group", "string"},
    {TypeKind::kGroupVersionKind, "version", "string"},
    {TypeKind::kGroupVersionKind, "kind", "string"},
    {TypeKind::kGroupVersionResource, "group", "string"},
    {TypeKind::kGroupVersionResource, "version", "string"},
    {TypeKind::kGroupVersionResource, "resource", "string"},
    {TypeKind::kUserInfo, "username", "string"},
    {TypeKind::kUserInfo, "uid", "string"},
    {TypeKind::kUserInfo, "groups", "list(string)"},
    {TypeKind::kUserInfo, "extra", "map(string, list(string))"},
}};

std::string text_of(const Type& type, std::string (*own)(const Type&)) {
  std::string text = own(type);
  if (type.of.empty()) return text;
  text += "(" + text_of(type.of[0], own);
  if (type.of.size() > 1) text += ", " + text_of(type.of[1], own);
  return text + ")";
}

std::string own_name(const Type& type) {
  if (type.kind == TypeKind::kObject) return type.fields->name;
  return std::string(kNames[static_cast<std::size_t>(type.kind)]);
}

}  // namespace

Type object_of(std::string name, std::vector<std::pair<std::string, Type>> members) {
  std::ranges::sort(members, {}, &std::pair<std::string, Type>::first);
  Type type{.kind = TypeKind::kObject};
  type.fields =
      std::make_shared<const ObjectFields>(ObjectFields{.name = std::move(name), .members = std::move(members)});
  return type;
}

struct TypeParts::Shared {
  std::vector<Type> types;
  std::size_t count = 0;
  bool has_unknown = false;
};

std::size_t TypeParts::size() const {
  return shared_ == nullptr ? 0 : shared_->types.size();
}

const Type& TypeParts::operator[](std::size_t index) const {
  return shared_->types[index];
}

const Type* TypeParts::begin() const {
  return shared_ == nullptr ? nullptr : shared_->types.data();
}

const Type* TypeParts::end() const {
  return shared_ == nullptr ? nullptr : shared_->types.data() + shared_->types.size();
}

void TypeParts::push_back(Type part) {
  auto next = shared_ == nullptr ? std::make_shared<Shared>() : std::make_shared<Shared>(*shared_);
  const bool is_unknown =
      part.kind == TypeKind::kVariable || part.kind == TypeKind::kParameterA || part.kind == TypeKind::kParameterB;
  next->count += 1 + part.of.count();
  next->has_unknown = next->has_unknown || is_unknown || part.of.has_unknown();
  next->types.push_back(std::move(part));
  shared_ = std::move(next);
}

std::size_t TypeParts::count() const {
  return shared_ == nullptr ? 0 : shared_->count;
}

bool TypeParts::has_unknown() const {
  return shared_ != nullptr && shared_->has_unknown;
}

bool operator==(const TypeParts& a, const TypeParts& b) {
  return a.shared_ == b.shared_ || std::ranges::equal(a, b);
}

const Type* find_field(const Type& object, std::string_view name) {
  const auto& members = object.fields->members;
  const auto found = std::ranges::lower_bound(members, name, std::ranges::less{},
                                              [](const auto& member) { return std::string_view(member.first); });
  return found == members.end() || found->first != name ? nullptr : &found->second;
}

Type list_of(Type element) {
  Type type{.kind = TypeKind::kList};
  type.of.push_back(std::move(element));
  return type;
}

Type map_of(Type key, Type value) {
  Type type{.kind = TypeKind::kMap};
  type.of.push_back(std::move(key));
  type.of.push_back(std::move(value));
  return type;
}

Type optional_of(Type value) {
  Type type{.kind = TypeKind::kOptional};
  type.of.push_back(std::move(value));
  return type;
}

std::string to_text(const Type& type) {
  return text_of(type, own_name);
}

std::string declared_text(const Type& type) {
  return text_of(type, [](const Type& one) -> std::string {
    if (one.kind == TypeKind::kTimestamp) return "google.protobuf.Timestamp";
    if (one.kind == TypeKind::kDuration) return "google.protobuf.Duration";
    if (one.kind == TypeKind::kNull) return "null_type";
    return own_name(one);
  });
}

Type parse_type(std::string_view text) {
  const std::size_t open = text.find('(');
  const auto* found = std::ranges::find(kNames, text.substr(0, open));
  SPILLWAY_CHECK(found != kNames.end());
  Type type{.kind = static_cast<TypeKind>(found - kNames.begin())};
  if (open == std::string_view::npos) return type;
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (type.kind != TypeKind::kMap) {
    type.of.push_back(parse_type(inside));
    return type;
  }
  const std::size_t comma = inside.find(", ");  // keys are simple
  return map_of(parse_type(inside.substr(0, comma)), parse_type(inside.substr(comma + 2)));
}

std::optional<Type> field_type(TypeKind message, std::string_view field) {
  const auto* found =
      std::ranges::find_if(kFields, [&](const Field& one) { return one.message == message && one.name == field; });
  return found == kFields.end() ? std::nullopt : std::optional(parse_type(found->type));
}

bool is_message(TypeKind kind) {
  return kind >= TypeKind::kRequest && kind <= TypeKind::kUserInfo;
}

bool fits(TypeKind kind, const Value& value) {
  if (kind == TypeKind::kDyn || kind == TypeKind::kParameterA || kind == TypeKind::kParameterB) return true;
  if (kind == TypeKind::kObject) return value.is(Kind::kMap);
  if (kind >= TypeKind::kAuthorizer && kind <= TypeKind::kDecision) {
    return value.is(Kind::kAccess) && static_cast<int>(value.as<Access>().stage) ==
                                          static_cast<int>(kind) - static_cast<int>(TypeKind::kAuthorizer);
  }
  constexpr int kLibraries = static_cast<int>(TypeKind::kQuantity) - static_cast<int>(Kind::kQuantity);
  if (kind >= TypeKind::kQuantity) return static_cast<int>(value.kind()) + kLibraries == static_cast<int>(kind);
  return !is_message(kind) && static_cast<int>(value.kind()) == static_cast<int>(kind) - 1;  // in the order of Kind
}

}  // namespace spillway::cel
