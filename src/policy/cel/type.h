// Types of expressions as far as they are known before anything is evaluated. "dyn" may be anything.
// Thread: any (pure). Source: CEL language definition, types.
#pragma once

#include "policy/cel/value.h"

#include <cstddef>
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
  kList,  // elements: of[0]
  kMap,   // keys: of[0], values: of[1]
  kTimestamp,
  kDuration,
  kType,  // the type of[0]; empty: any type
  kAuthorizer,
  kPathCheck,
  kGroupCheck,
  kResourceCheck,
  kDecision,
  kRequest,
  kGroupVersionKind,
  kGroupVersionResource,
  kUserInfo,
  kParameterA,  // in signatures: the same type wherever it occurs
  kParameterB,
  kObject,  // with `fields`
  kQuantity,
  kUrl,
  kIp,
  kCidr,
  kFormat,
  kOptional,  // content: of[0]
  kVariable,  // a type that is still unknown: `variable`
  kError,     // type of an expression that does not compile
};

struct ObjectFields;

struct Type;

/// The types inside another one. Copies share them: each node of an expression has a type, and with nested lists the
/// copies would be a product of nodes and levels.
class TypeParts {
 public:
  bool empty() const { return size() == 0; }

  std::size_t size() const;
  const Type& operator[](std::size_t index) const;
  const Type* begin() const;
  const Type* end() const;
  /// Adds a part to this list, not to its copies.
  void push_back(Type part);

  /// The number of all types inside, at every level.
  std::size_t count() const;
  /// True if a type inside, at any level, is a variable or a parameter of a signature.
  bool has_unknown() const;

  friend bool operator==(const TypeParts& a, const TypeParts& b);

 private:
  struct Shared;
  std::shared_ptr<const Shared> shared_;  // null: no parts
};

struct Type {
  TypeKind kind = TypeKind::kDyn;
  TypeParts of = {};
  std::shared_ptr<const ObjectFields> fields = {};  // objects with the same pointer have the same type
  std::uint32_t variable = 0;                       // for kVariable: its number

  friend bool operator==(const Type&, const Type&) = default;
};

/// The members of an object, sorted by name, and the name of its type.
struct ObjectFields {
  std::string name;
  std::vector<std::pair<std::string, Type>> members;
};

Type object_of(std::string name, std::vector<std::pair<std::string, Type>> members);
/// nullptr: the type has no such member.
const Type* find_field(const Type& object, std::string_view name);

Type list_of(Type element);
Type map_of(Type key, Type value);
Type optional_of(Type value);

/// "int", "list(string)", "map(string, dyn)", "kubernetes.AdmissionRequest", "timestamp", "null".
std::string to_text(const Type& type);
/// The text of the type with the names of expressions: "google.protobuf.Timestamp", "null_type".
std::string declared_text(const Type& type);

/// Parses the form of to_text(); "A" and "B" are parameters. The text must be a constant of this program.
Type parse_type(std::string_view text);

/// The type of a member of a message; nullopt: no such member. Types that are no messages have none.
std::optional<Type> field_type(TypeKind message, std::string_view field);
bool is_message(TypeKind kind);

/// True if the value itself has that type; its elements are not checked.
bool fits(TypeKind kind, const Value& value);

}  // namespace spillway::cel
