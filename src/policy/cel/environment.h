// This is what expressions may name, as far as it differs from place to place: match conditions of webhooks, rules of
// schemas, admission policies. Thread: any (plain values). Source: Kubernetes docs, "Common Expression Language in
// Kubernetes", "Validating Admission Policy".
#pragma once

#include "policy/cel/type.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cel {

/// An expression that others see as variables.NAME.
struct NamedVariable {
  std::string name;
  Type type;
  std::size_t depth = 0;  // for its tree, the variables that it names counted as deep as they are
};

/// A release that is rolled back has to know what new expressions say; those that are stored may say everything.
enum class Age : std::uint8_t { kNew, kStored };

struct Environment {
  Age age = Age::kNew;
  /// For what type self and oldSelf are. Null: the variables are object, oldObject and request.
  const Type* self = nullptr;
  /// This is what names of types within self begin with: texts of errors say selfType0 instead.
  std::string_view self_name = {};
  /// oldSelf is an optional value: absent where the value is new.
  bool optional_old_self = false;
  bool authorizer = true;
  /// authorizer.requestResource is there. Type checking has no request.
  bool request_resource = true;
  bool params = false;
  bool namespace_object = false;
  /// For what types object and oldObject are, and params. Null: dyn.
  const Type* object = nullptr;
  const Type* params_type = nullptr;
  /// Those that come before, the last of a name counts. Null: there is nothing called variables.
  const std::vector<NamedVariable>* variables = nullptr;
  /// The only variables there are, by name. Null: those above.
  const std::vector<NamedVariable>* given = nullptr;
};

/// This is what namespaceObject is: of a Namespace what it is called, its labels and annotations, its phase.
const Type& namespace_type();

}  // namespace spillway::cel
