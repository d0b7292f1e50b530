#include "policy/cel/compile_text.h"

#include "base/fiber.h"
#include "base/utf8.h"
#include "policy/cel/checker.h"
#include "policy/cel/parser.h"
#include "policy/cel/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

constexpr std::uint64_t kTextUnits = 1'000;       // work of a text whatever its length
constexpr std::uint64_t kByteUnits = 20;          // work of a byte of it
constexpr std::size_t kLineShownMax = 4'096;      // bytes of a line that is shown
constexpr std::size_t kMessageMax = 256U << 10U;  // bytes of all problems of a text

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
}

/// A place in a text: both begin with 1.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
  std::string_view text;  // for the line
};

Place place_of(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const std::size_t begin = before.rfind('\n') + 1;
  return {.line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1,
          .column = static_cast<std::size_t>(std::ranges::count_if(before.substr(begin), starts_character)) + 1,
          .text = text.substr(begin, text.find('\n', begin) - begin)};
}

/// A dot for each character before the place and a mark below it; wide where the character takes more than a byte.
std::string marked(const Place& place) {
  std::string line(place.text);
  std::ranges::replace(line, '\t', ' ');
  std::string out = fmt::format("\n | {}\n | ", line);
  std::size_t at = 0;
  const auto is_wide = [&] { return at < line.size() && (static_cast<unsigned char>(line[at]) & 0x80U) != 0; };
  for (std::size_t i = 1; i < place.column && at < line.size(); ++i) {
    out += is_wide() ? "．" : ".";
    do {
      ++at;
    } while (at < line.size() && !starts_character(line[at]));
  }
  return out + (is_wide() ? "＾" : "^");
}

/// Formats an error: "ERROR: <input>:1:5: WHY", and below it the line with a mark.
std::string shown(std::string_view text, const SyntaxError& problem) {
  if (problem.nowhere) return fmt::format("ERROR: <input>:-1:0: {}", problem.message);
  if (text.empty()) return fmt::format("ERROR: <input>:1:0: {}", problem.message);
  const Place place = place_of(text, problem.position);
  std::string out = fmt::format("ERROR: <input>:{}:{}: {}", place.line, place.column, problem.message);
  if (place.text.size() <= kLineShownMax) out += marked(place);
  return out;
}

/// The depth to which an evaluation uses the stack.
std::size_t depth_of(const Node& node, const Environment& environment) {
  std::size_t below = 0;
  const bool is_named = node.variable == Variable::kVariables && environment.variables != nullptr;
  if (is_named && node.slot < environment.variables->size()) below = (*environment.variables)[node.slot].depth;
  for (const Node& child : node.children) below = std::max(below, depth_of(child, environment));
  return below + 1;
}

Error does_not_compile(std::string_view text, std::vector<SyntaxError> problems) {
  std::ranges::stable_sort(problems, {},
                           [](const SyntaxError& problem) { return std::pair(!problem.nowhere, problem.position); });
  std::string out;
  std::size_t reported = 0;
  for (; reported < problems.size() && reported < kProblemsMax && out.size() < kMessageMax; ++reported) {
    if (reported > 0) out += "\n";
    out += shown(text, problems[reported]);
  }
  if (reported < problems.size()) out += fmt::format("\n{} more errors were truncated", problems.size() - reported);
  return Error{ErrorCode::kInvalid, std::move(out), {}};
}

}  // namespace

Result<CheckedText> check_text(std::string_view text, const Environment& environment) {
  if (!is_utf8(text)) return make_error(ErrorCode::kInvalid, "the expression is no UTF-8");
  std::vector<SyntaxError> problems;
  const Macros macros = environment.age == Age::kStored ? Macros::kOfStoredExpressions : Macros::kOfNewExpressions;
  Node root = parse(text, macros, problems);
  if (!problems.empty()) return does_not_compile(text, std::move(problems));
  check(root, problems, environment);
  if (problems.empty()) check_literals(root, problems);
  if (!problems.empty()) return does_not_compile(text, std::move(problems));
  const std::size_t depth = depth_of(root, environment);
  if (environment.variables != nullptr && depth > kNestingMax) {
    return does_not_compile(
        text, {{.position = 0,
                .message = fmt::format("expression recursion limit exceeded: {}, with the variables that it names",
                                       kNestingMax)}});
  }
  Type type = root.type;
  return CheckedText{.root = std::move(root), .type = std::move(type), .depth = depth};
}

Result<CheckedText> compile_text(std::string_view text, const Environment& environment) {
  Result<CheckedText> checked = check_text(text, environment);
  count_compilation(text);
  if (!checked) return make_error(ErrorCode::kInvalid, "compilation failed: {}", checked.error().message);
  SPILLWAY_TRY_VOID(plan(checked->root));
  return checked;
}

void count_compilation(std::string_view text) {
  count_work(kTextUnits + kByteUnits * text.size());
}

}  // namespace spillway::cel
