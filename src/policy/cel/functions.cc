#include "policy/cel/functions.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace spillway::cel {

namespace {

auto key_of(const Overload& overload) {
  return std::tuple(overload.name, overload.member, overload.parameters.size());
}

/// "int, map(string, int) -> int": commas inside parentheses separate nothing here.
std::vector<Type> parse_parameters(std::string_view text) {
  std::vector<Type> types;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i == text.size() ? ',' : text[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c != ',' || depth != 0) continue;
    if (i > begin) types.push_back(parse_type(text.substr(begin, i - begin)));
    begin = i + 2;
  }
  return types;
}

Overload overload_of(const Definition& row) {
  constexpr std::string_view kArrow = " -> ";
  const std::size_t arrow = row.signature.find(kArrow);
  return {.name = row.name,
          .member = row.member,
          .parameters = parse_parameters(row.signature.substr(0, arrow)),
          .result = parse_type(row.signature.substr(arrow + kArrow.size())),
          .function = row.function};
}

const std::vector<Overload>& table() {
  static const std::vector<Overload> kTable = [] {
    std::vector<Overload> made;
    for (const auto family : {arithmetic(), conversions(), texts(), lists(), sets(), times(), authorization(),
                              quantities(), urls(), addresses(), formats(), optionals()}) {
      for (const Definition& row : family) made.push_back(overload_of(row));
    }
    std::ranges::stable_sort(made, {}, key_of);
    return made;
  }();
  return kTable;
}

}  // namespace

std::span<const Overload> overloads_of(std::string_view name, bool member, std::size_t arguments) {
  const auto found = std::ranges::equal_range(table(), std::tuple(name, member, arguments), {}, key_of);
  return {found.begin(), found.end()};
}

bool is_function(std::string_view name) {
  return std::ranges::any_of(table(), [&](const Overload& overload) { return overload.name == name; });
}

bool is_left_out(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kNames{"fieldSelector", "format", "labelSelector"};
  return std::ranges::binary_search(kNames, name);
}

Error evaluation_error(std::string_view why) {
  return Error{ErrorCode::kInvalid, std::string(why), {}};
}

Error no_such_overload() {
  return evaluation_error("no such overload");
}

Error over_budget() {
  return evaluation_error("operation cancelled: actual cost limit exceeded");
}

}  // namespace spillway::cel
