// Types of expressions as far as they are known before anything is evaluated. "dyn" may be anything.
// Thread: any (pure). Source: CEL language definition, types.
#pragma once

#include "policy/cel/value.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cel {

enum class TypeKind : std::uint8_t {
  kDyn,
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kList,  // of[0]
  kMap,   // of[0] to of[1]
  kTimestamp,
  kDuration,
  kType,
  kAuthorizer,
  kPathCheck,
  kGroupCheck,
  kResourceCheck,
  kDecision,
  kRequest,
  kGroupVersionKind,
  kGroupVersionResource,
  kUserInfo,
  kParameterA,  // in signatures: the same type wherever it stands
  kParameterB,
  kObject,  // with `fields`
  kQuantity,
  kUrl,
  kIp,
  kCidr,
  kFormat,
  kOptional,  // of[0]
};

struct ObjectFields;

struct Type {
  TypeKind kind = TypeKind::kDyn;
  std::vector<Type> of = {};
  std::shared_ptr<const ObjectFields> fields = {};  // two objects are of one type if they share them

  friend bool operator==(const Type&, const Type&) = default;
};

/// The members of an object, sorted by name.
struct ObjectFields {
  std::vector<std::pair<std::string, Type>> members;
};

Type object_of(std::vector<std::pair<std::string, Type>> members);
/// nullptr: it has no such member.
const Type* find_field(const Type& object, std::string_view name);

Type list_of(Type element);
Type map_of(Type key, Type value);
Type optional_of(Type value);

/// "int", "list(string)", "map(string, dyn)", "kubernetes.AdmissionRequest".
std::string to_text(const Type& type);

/// As to_text() writes it; "A" and "B" are parameters. The text is one of ours.
Type parse_type(std::string_view text);

/// What a member of a message is; nullopt: there is no such one. Types that are no messages have none.
std::optional<Type> field_type(TypeKind message, std::string_view field);
bool is_message(TypeKind kind);

/// What the parameters of a signature stand for.
using Bindings = std::array<std::optional<Type>, 2>;

/// Whether a value of type `given` may stand where `wanted` is asked for.
bool assignable(const Type& wanted, const Type& given, Bindings& bindings);
/// With every parameter replaced by what it stands for; one that stands for nothing is dyn.
Type resolved(const Type& type, const Bindings& bindings);

/// Whether the value itself is of that type, whatever is in it.
bool fits(TypeKind kind, const Value& value);

}  // namespace spillway::cel
