#include "policy/cel/expression.h"

#include "base/utf8.h"
#include "policy/cel/checker.h"
#include "policy/cel/evaluator.h"
#include "policy/cel/functions.h"
#include "policy/cel/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

constexpr std::size_t kLineShownMax = 512;  // bytes of a line that is shown

/// "ERROR: <input>:1:5: WHY", and below it the line with a mark.
std::string shown(std::string_view text, const SyntaxError& problem) {
  const std::string_view before = text.substr(0, problem.position);
  const std::size_t begin = before.rfind('\n') + 1;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const std::string_view left = before.substr(begin);
  const auto column =
      std::ranges::count_if(left, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
  const auto row = std::ranges::count(before, '\n') + 1;
  std::string out = fmt::format("ERROR: <input>:{}:{}: {}", row, column + 1, problem.message);
  if (line.size() <= kLineShownMax) {
    out += fmt::format("\n | {}\n | {}^", line, std::string(static_cast<std::size_t>(column), '.'));
  }
  return out;
}

Error does_not_compile(std::string_view text, const std::vector<SyntaxError>& problems) {
  std::string out = "compilation failed: ";
  for (const SyntaxError& problem : problems) {
    if (&problem != &problems.front()) out += "\n";
    out += shown(text, problem);
  }
  return Error{ErrorCode::kInvalid, std::move(out), {}};
}

}  // namespace

Result<Expression> Expression::compile(std::string_view text) {
  auto kept = std::make_shared<const std::string>(text);
  if (!is_utf8(text)) return make_error(ErrorCode::kInvalid, "compilation failed: the expression is no UTF-8");
  SyntaxError why;
  std::optional<Node> node = parse(*kept, why);
  if (!node) {
    why.message = "Syntax error: " + why.message;
    return does_not_compile(text, {why});
  }
  std::vector<SyntaxError> problems;
  const Type type = check(*node, problems);
  if (!problems.empty()) return does_not_compile(text, problems);
  if (type.kind != TypeKind::kBool) return make_error(ErrorCode::kInvalid, "must evaluate to bool");
  return Expression(std::move(kept), std::make_shared<const Node>(*std::move(node)));
}

Result<bool> Expression::evaluate(const Activation& activation, Budget& budget) const {
  const Result<Value> value = Evaluator(activation, budget).evaluate(*root_);
  if (budget.spent()) return over_budget();
  if (!value) return value.error();
  if (!value->is(Kind::kBool)) return no_such_overload();
  return value->as<bool>();
}

}  // namespace spillway::cel
