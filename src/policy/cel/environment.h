// The names that expressions may use, where they differ between uses: match conditions of webhooks, rules of schemas,
// admission policies. Thread: any (plain values). Source: Kubernetes docs, "Common Expression Language in Kubernetes",
// "Validating Admission Policy".
#pragma once

#include "policy/cel/type.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cel {

/// An expression that other expressions use as variables.NAME.
struct NamedVariable {
  std::string name;
  Type type;
  std::size_t depth = 0;  // depth of its tree, including the variables that it uses
};

/// kNew: functions of later releases are refused, so that a release that is rolled back supports all new expressions.
/// kStored: all are allowed.
enum class Age : std::uint8_t { kNew, kStored };

struct Environment {
  Age age = Age::kNew;
  /// The type of self and oldSelf. Null: the variables are object, oldObject and request.
  const Type* self = nullptr;
  /// The prefix of type names within self: texts of errors have selfType0 instead.
  std::string_view self_name = {};
  /// oldSelf is an optional value: absent where the value is new.
  bool optional_old_self = false;
  bool authorizer = true;
  /// True if authorizer.requestResource exists. Type checking has no request.
  bool request_resource = true;
  bool params = false;
  bool namespace_object = false;
  /// The type of object and oldObject, and of params. Null: dyn.
  const Type* object = nullptr;
  const Type* params_type = nullptr;
  /// Variables defined before; the last one of a name counts. Null: there is no object called variables.
  const std::vector<NamedVariable>* variables = nullptr;
  /// The only variables that exist, by name. Null: those above.
  const std::vector<NamedVariable>* given = nullptr;
};

/// The type of namespaceObject: of a Namespace its name, labels, annotations and phase.
const Type& namespace_type();

}  // namespace spillway::cel
