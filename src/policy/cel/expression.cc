#include "policy/cel/expression.h"

#include "policy/cel/compile_text.h"
#include "policy/cel/evaluator.h"
#include "policy/cel/functions.h"

#include <utility>

namespace spillway::cel {

Result<Expression> Expression::compile(std::string_view text) {
  auto kept = std::make_shared<const std::string>(text);
  SPILLWAY_TRY(checked, compile_text(*kept, nullptr));
  if (checked.type.kind != TypeKind::kBool) return make_error(ErrorCode::kInvalid, "must evaluate to bool");
  return Expression(std::move(kept), std::make_shared<const Node>(std::move(checked.root)));
}

Result<bool> Expression::evaluate(const Activation& activation, Budget& budget) const {
  const Result<Value> value = Evaluator(activation, budget).evaluate(*root_);
  if (budget.spent()) return over_budget();
  if (!value) return value.error();
  if (!value->is(Kind::kBool)) return no_such_overload();
  return value->as<bool>();
}

}  // namespace spillway::cel
