#include "policy/cel/self_expression.h"

#include "policy/cel/compile_text.h"
#include "policy/cel/evaluator.h"
#include "policy/cel/expression.h"
#include "policy/cel/functions.h"

#include <optional>
#include <utility>

namespace spillway::cel {

namespace {

bool names_old_self(const Node& node) {
  if (node.kind == NodeKind::kIdentifier && node.variable == Variable::kOldSelf) return true;
  for (const Node& child : node.children) {
    if (names_old_self(child)) return true;
  }
  return false;
}

}  // namespace

Result<SelfExpression> SelfExpression::compile(std::string_view text, const Type& self, TypeKind wanted,
                                               bool optional) {
  auto kept = std::make_shared<const std::string>(text);
  SPILLWAY_TRY(checked, compile_text(*kept, {.self = &self, .optional_old_self = optional}));
  if (checked.type.kind != wanted) {
    return make_error(ErrorCode::kInvalid, "{}",
                      wanted == TypeKind::kBool ? "cel expression must evaluate to a bool"
                                                : "messageExpression must evaluate to a string");
  }
  const bool compares = names_old_self(checked.root);
  return SelfExpression(std::move(kept), std::make_shared<const Node>(std::move(checked.root)), compares, optional);
}

Result<Value> SelfExpression::evaluate(const Value& self, const Value* old_self, Budget& budget) const {
  static const api::Json kNothing;
  std::optional<Value> before;
  if (optional_) before = old_self == nullptr ? Value::none() : Value::some(*old_self);
  const Activation activation{.object = kNothing,
                              .old_object = kNothing,
                              .request = kNothing,
                              .self = &self,
                              .old_self = before ? &*before : old_self};
  Result<Value> value = Evaluator(activation, budget).evaluate(*root_);
  if (budget.spent()) return over_budget();
  return value;
}

}  // namespace spillway::cel
