// What expressions may name, as far as it differs from place to place: match conditions of webhooks, rules of schemas,
// admission policies. Thread: any (plain values).
// Source: Kubernetes docs, "Common Expression Language in Kubernetes", "Validating Admission Policy".
#pragma once

#include "policy/cel/type.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace spillway::cel {

/// An expression that others see as variables.NAME.
struct NamedVariable {
  std::string name;
  Type type;
  std::size_t depth = 0;  // of its tree, the variables that it names counted as deep as they are
};

struct Environment {
  /// Of what type self and oldSelf are. Null: the variables are object, oldObject and request.
  const Type* self = nullptr;
  /// oldSelf is an optional value: absent where the value is new.
  bool optional_old_self = false;
  bool authorizer = true;
  bool params = false;
  bool namespace_object = false;
  /// Those that come before, the last of a name counts. Null: there is nothing called variables.
  const std::vector<NamedVariable>* variables = nullptr;
};

/// What namespaceObject is: of a Namespace what it is called, its labels and annotations, its phase.
const Type& namespace_type();

}  // namespace spillway::cel
