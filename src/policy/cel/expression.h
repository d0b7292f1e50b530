// An expression in the Common Expression Language as Kubernetes has it in the match conditions of webhooks: read and
// checked once, evaluated as often as there are requests. Both are bounded: the length and depth of the text, the cost
// of an evaluation. Thread: any (immutable). Source: CEL language definition; Kubernetes docs, "Common Expression
// Language in Kubernetes".
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/cel/access.h"
#include "policy/cel/node.h"
#include "policy/cel/value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::cel {

/// Units that one evaluation may cost.
inline constexpr std::uint64_t kCallBudget = 1'000'000;

/// What an expression sees.
struct Activation {
  const api::Json& object;      // null: there is none
  const api::Json& old_object;  // as `object`
  const api::Json& request;     // an AdmissionRequest without its objects
  AccessRequest access = {};    // authorizer.requestResource
  const AccessCheck* check = nullptr;
  // Of a SelfExpression.
  const Value* self = nullptr;
  const Value* old_self = nullptr;
};

class Expression {
 public:
  /// kInvalid: it does not compile or is no condition, with upstream's words.
  static Result<Expression> compile(std::string_view text);

  /// kInvalid: why it has no value. Charges `budget`.
  Result<bool> evaluate(const Activation& activation, Budget& budget) const;

  const std::string& text() const { return *text_; }

 private:
  Expression(std::shared_ptr<const std::string> text, std::shared_ptr<const Node> root)
      : text_(std::move(text)), root_(std::move(root)) {}

  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace spillway::cel
