#include "policy/admission_policies/policy_compiler.h"

#include <algorithm>
#include <array>

namespace spillway::admission_policies {

using cel::Expression;
using cel::TypeKind;

Result<Expression> PolicyCompiler::condition(std::string_view text) const {
  return Expression::compile(text, condition_environment(), {TypeKind::kBool});
}

Result<Expression> PolicyCompiler::variable(std::string_view name, std::string_view text) {
  Result<Expression> made = Expression::compile(text, environment(), {});
  variables_.push_back({std::string(name), made ? made->type() : cel::Type{}, made ? made->depth() : 0});
  return made;
}

Result<Expression> PolicyCompiler::validation(std::string_view text) const {
  return Expression::compile(text, environment(), {TypeKind::kBool});
}

Result<Expression> PolicyCompiler::message(std::string_view text) const {
  cel::Environment seen = environment();
  seen.authorizer = false;
  return Expression::compile(text, seen, {TypeKind::kString});
}

Result<Expression> PolicyCompiler::annotation(std::string_view text) const {
  return Expression::compile(text, environment(), {TypeKind::kString, TypeKind::kNull});
}

bool is_identifier(std::string_view name) {
  static constexpr std::array<std::string_view, 21> kReserved{
      "as",  "break", "const",     "continue", "else",    "false",  "for",  "function", "if",   "import", "in",
      "let", "loop",  "namespace", "null",     "package", "return", "true", "var",      "void", "while"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c); }) &&
         !std::ranges::binary_search(kReserved, name);
}

}  // namespace spillway::admission_policies
