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

bool is_generic(const Type& type) {
  return type.kind == TypeKind::kParameterA || type.kind == TypeKind::kParameterB ||
         std::ranges::any_of(type.of, is_generic);
}

Overload overload_of(const Definition& row) {
  constexpr std::string_view kArrow = " -> ";
  const std::size_t arrow = row.signature.find(kArrow);
  Overload made{.name = row.name,
                .member = row.member,
                .parameters = parse_parameters(row.signature.substr(0, arrow)),
                .result = parse_type(row.signature.substr(arrow + kArrow.size())),
                .function = row.function};
  made.generic = is_generic(made.result) || std::ranges::any_of(made.parameters, is_generic);
  return made;
}

const std::vector<Overload>& table() {
  static const std::vector<Overload> kTable = [] {
    std::vector<Overload> made;
    for (const auto family : {arithmetic(), conversions(), texts(), lists(), sets(), times(), authorization(),
                              quantities(), urls(), addresses(), formats(), optionals(), text_formats(), operators()}) {
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
  return std::ranges::binary_search(table(), name, {}, &Overload::name);
}

std::span<const Definition> operators() {
  static constexpr std::array kRows = std::to_array<Definition>({
      {"_&&_", "bool, bool -> bool", nullptr},
      {"_||_", "bool, bool -> bool", nullptr},
      {"_?_:_", "bool, A, A -> A", nullptr},
      {"@not_strictly_false", "bool -> bool", nullptr},
      {"cel.@mapInsert", "map(A, B), A, B -> map(A, B)", nullptr},
      {"cel.@mapInsert", "map(A, B), map(A, B) -> map(A, B)", nullptr},
  });
  return kRows;
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
