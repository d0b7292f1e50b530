// One entry of x-kubernetes-validations: an expression over the value that the schema describes, and the message if it
// is false. Immutable. Thread: any. Source: Kubernetes docs, "Extend the Kubernetes API with
// CustomResourceDefinitions", validation rules.
#pragma once

#include "policy/cel/self_expression.h"

#include <optional>
#include <string>

namespace spillway::structural {

struct Rule {
  std::string text;                          // without blanks at both ends
  std::string message;                       // without blanks at both ends; empty: there is none
  std::string reason;                        // "FieldValueForbidden", …; empty: invalid
  std::string place;                         // path below the value, as in errors: "a.b"; empty: the value itself
  std::optional<cel::SelfExpression> holds;  // nullopt: the text does not compile
  std::string why_not;                       // the error of the compilation
  std::optional<cel::SelfExpression> words;  // messageExpression
};

}  // namespace spillway::structural
