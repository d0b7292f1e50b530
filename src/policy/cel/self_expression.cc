#include "policy/cel/self_expression.h"

#include "policy/cel/compile_text.h"
#include "policy/cel/evaluator.h"
#include "policy/cel/expression.h"
#include "policy/cel/functions.h"
#include "policy/cel/planner.h"

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

Result<SelfExpression> SelfExpression::compile(std::string_view text, const SelfType& self, TypeKind wanted,
                                               const SelfRule& rule) {
  auto kept = std::make_shared<const std::string>(text);
  Result<CheckedText> checked = check_text(
      *kept,
      {.age = rule.age, .self = &self.type, .self_name = self.name, .optional_old_self = rule.optional_old_self});
  const bool words = wanted == TypeKind::kString;
  if (!checked) {
    return make_error(ErrorCode::kInvalid, "{}compilation failed: {}", words ? "messageExpression " : "",
                      checked.error().message);
  }
  if (checked->type.kind != wanted) {
    return make_error(ErrorCode::kInvalid, "{}",
                      words ? "messageExpression must evaluate to a string" : "cel expression must evaluate to a bool");
  }
  const std::uint64_t cost = rule.sizes == nullptr ? 0 : estimate_cost(checked->root, *rule.sizes).max;
  const bool compares = names_old_self(checked->root);
  if (const Result<void> planned = plan(checked->root); !planned) {
    return make_error(ErrorCode::kInvalid, "{} instantiation failed: {}", words ? "messageExpression" : "program",
                      planned.error().message);
  }
  return SelfExpression(std::move(kept), std::make_shared<const Node>(std::move(checked->root)), compares,
                        rule.optional_old_self, cost);
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
