#include "policy/cel/compile_text.h"

#include "base/utf8.h"
#include "policy/cel/checker.h"
#include "policy/cel/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
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

/// An evaluation goes as deep on the stack.
std::size_t depth_of(const Node& node, const Environment& environment) {
  std::size_t below = 0;
  const bool is_named = node.variable == Variable::kVariables && environment.variables != nullptr;
  if (is_named && node.slot < environment.variables->size()) below = (*environment.variables)[node.slot].depth;
  for (const Node& child : node.children) below = std::max(below, depth_of(child, environment));
  return below + 1;
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

Result<CheckedText> compile_text(std::string_view text, const Environment& environment) {
  if (!is_utf8(text)) return make_error(ErrorCode::kInvalid, "compilation failed: the expression is no UTF-8");
  SyntaxError why;
  std::optional<Node> node = parse(text, why);
  if (!node) {
    why.message = "Syntax error: " + why.message;
    return does_not_compile(text, {why});
  }
  std::vector<SyntaxError> problems;
  Type type = check(*node, problems, environment);
  if (!problems.empty()) return does_not_compile(text, problems);
  const std::size_t depth = depth_of(*node, environment);
  if (depth > kDepthMax) {
    return does_not_compile(
        text, {{.position = 0,
                .message = fmt::format("expression recursion limit exceeded: {}, with the variables that it names",
                                       kDepthMax)}});
  }
  return CheckedText{.root = *std::move(node), .type = std::move(type), .depth = depth};
}

}  // namespace spillway::cel
