#include "policy/cel/expression.h"

#include "policy/cel/compile_text.h"
#include "policy/cel/evaluator.h"
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::cel {

namespace {

std::string shown(std::initializer_list<TypeKind> wanted) {
  std::string text;
  for (const TypeKind kind : wanted) {
    text += (text.empty() ? "" : " ") + (kind == TypeKind::kNull ? "null_type" : to_text({.kind = kind}));
  }
  return wanted.size() == 1 ? text : fmt::format("one of [{}]", text);
}

}  // namespace

Result<Expression> Expression::compile(std::string_view text) {
  return compile(text, {}, {TypeKind::kBool});
}

Result<Expression> Expression::compile(std::string_view text, const Environment& environment,
                                       std::initializer_list<TypeKind> wanted) {
  auto kept = std::make_shared<const std::string>(text);
  SPILLWAY_TRY(checked, compile_text(*kept, environment));
  const bool fitting = wanted.size() == 0 || std::ranges::find(wanted, checked.type.kind) != wanted.end();
  if (!fitting)
    return make_error(ErrorCode::kInvalid, "must evaluate to {} but got {}", shown(wanted),
                      declared_text(checked.type));
  return Expression(std::move(kept), std::make_shared<const Node>(std::move(checked.root)), std::move(checked.type),
                    checked.depth);
}

Result<bool> Expression::evaluate(const Activation& activation, Budget& budget) const {
  const Result<Value> value = this->value(activation, budget);
  if (!value) return value.error();
  if (!value->is(Kind::kBool)) return no_such_overload();
  return value->as<bool>();
}

Result<Value> Expression::value(const Activation& activation, Budget& budget) const {
  Result<Value> value = Evaluator(activation, budget).evaluate(*root_);
  if (budget.spent()) return over_budget();
  return value;
}

}  // namespace spillway::cel
