// The expressions of one admission policy, compiled in the order in which they may see one another: variables first,
// each of which sees those before it. Thread: any (plain values).
// Source: Kubernetes docs, "Validating Admission Policy"; KEP-3488.
#pragma once

#include "base/error.h"
#include "policy/cel/environment.h"
#include "policy/cel/expression.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission_policies {

class PolicyCompiler {
 public:
  /// The members of the policy that decide which names its expressions may use.
  struct Names {
    bool params = false;     // with a paramKind
    bool variables = false;  // with variables
  };

  explicit PolicyCompiler(Names names) : names_(names) {}

  // kInvalid: it does not compile, or has another type than required; in upstream's words.

  /// Compiles a match condition, which sees no variables, and namespaceObject as null.
  Result<cel::Expression> condition(std::string_view text) const;
  /// Makes the variable visible to later expressions, with an unknown type if it does not compile.
  Result<cel::Expression> variable(std::string_view name, std::string_view text);
  Result<cel::Expression> validation(std::string_view text) const;
  /// Compiles an expression of a message, which must give a text and may not call the authorizer.
  Result<cel::Expression> message(std::string_view text) const;
  /// A text or null.
  Result<cel::Expression> annotation(std::string_view text) const;

  /// The environment of match conditions.
  cel::Environment condition_environment() const { return {.params = names_.params, .namespace_object = true}; }

 private:
  cel::Environment environment() const {
    return {.params = names_.params, .namespace_object = true, .variables = names_.variables ? &variables_ : nullptr};
  }

  Names names_;
  std::vector<cel::NamedVariable> variables_;
};

/// True for an identifier of expressions: letters, digits and underscores, no digit first, no reserved word.
bool is_identifier(std::string_view name);

}  // namespace spillway::admission_policies
