#include "policy/cel/type.h"

#include "base/check.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::array<std::string_view, 31> kNames{"dyn",
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
                                                  "optional_type"};

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

bool takes_null(TypeKind kind) {
  return kind == TypeKind::kNull || kind == TypeKind::kTimestamp || kind == TypeKind::kDuration ||
         kind == TypeKind::kObject || (kind >= TypeKind::kAuthorizer && kind <= TypeKind::kUserInfo);
}

std::optional<std::size_t> parameter(TypeKind kind) {
  if (kind == TypeKind::kParameterA) return 0;
  if (kind == TypeKind::kParameterB) return 1;
  return std::nullopt;
}

/// Of two types that may stand for one another, the one that says less.
const Type& looser(const Type& a, const Type& b) {
  if (a.kind == TypeKind::kDyn || b.kind == TypeKind::kDyn) return a.kind == TypeKind::kDyn ? a : b;
  if (a.kind == TypeKind::kNull) return b;
  for (std::size_t i = 0; i < std::min(a.of.size(), b.of.size()); ++i) {
    if (&looser(a.of[i], b.of[i]) == &b.of[i] && !(a.of[i] == b.of[i])) return b;
  }
  return a;
}

bool bind(std::optional<Type>& bound, const Type& given, Bindings& bindings) {
  if (!bound) {
    bound = given;
    return true;
  }
  if (!assignable(*bound, given, bindings) && !assignable(given, *bound, bindings)) return false;
  Type loose = looser(*bound, given);
  bound = std::move(loose);
  return true;
}

}  // namespace

Type object_of(std::vector<std::pair<std::string, Type>> members) {
  std::ranges::sort(members, {}, &std::pair<std::string, Type>::first);
  Type type{.kind = TypeKind::kObject};
  type.fields = std::make_shared<const ObjectFields>(ObjectFields{std::move(members)});
  return type;
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
  std::string text(kNames[static_cast<std::size_t>(type.kind)]);
  if (type.of.empty()) return text;
  text += "(" + to_text(type.of[0]);
  if (type.of.size() > 1) text += ", " + to_text(type.of[1]);
  return text + ")";
}

Type parse_type(std::string_view text) {
  const std::size_t open = text.find('(');
  const auto* found = std::ranges::find(kNames, text.substr(0, open));
  SPILLWAY_CHECK(found != kNames.end());
  Type type{.kind = static_cast<TypeKind>(found - kNames.begin())};
  if (open == std::string_view::npos) return type;
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (type.kind == TypeKind::kList) return list_of(parse_type(inside));
  if (type.kind == TypeKind::kOptional) return optional_of(parse_type(inside));
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

bool assignable(const Type& wanted, const Type& given, Bindings& bindings) {
  if (const std::optional<std::size_t> at = parameter(wanted.kind)) return bind(bindings[*at], given, bindings);
  if (wanted.kind == TypeKind::kDyn || given.kind == TypeKind::kDyn) return true;
  if (given.kind == TypeKind::kNull) return takes_null(wanted.kind);
  if (wanted.kind != given.kind || wanted.fields != given.fields) return false;
  for (std::size_t i = 0; i < wanted.of.size(); ++i) {
    if (!assignable(wanted.of[i], given.of[i], bindings)) return false;
  }
  return true;
}

Type resolved(const Type& type, const Bindings& bindings) {
  if (const std::optional<std::size_t> at = parameter(type.kind)) return bindings[*at].value_or(Type{});
  Type made{.kind = type.kind, .fields = type.fields};
  for (const Type& part : type.of) made.of.push_back(resolved(part, bindings));
  return made;
}

bool fits(TypeKind kind, const Value& value) {
  if (kind == TypeKind::kDyn || parameter(kind)) return true;
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
