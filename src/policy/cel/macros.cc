#include "policy/cel/macros.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spillway::cel {

namespace {

Node identifier(std::string_view name, std::uint32_t position) {
  return {.kind = NodeKind::kIdentifier, .position = position, .name = std::string(name)};
}

Node constant(Value value, std::uint32_t position) {
  return {.kind = NodeKind::kConstant, .position = position, .constant = std::move(value)};
}

Node call(std::string_view function, std::uint32_t position, std::vector<Node> arguments) {
  return {
      .kind = NodeKind::kCall, .position = position, .name = std::string(function), .children = std::move(arguments)};
}

template <typename... Nodes>
std::vector<Node> nodes(Nodes... each) {
  std::vector<Node> made;
  made.reserve(sizeof...(each));
  (made.push_back(std::move(each)), ...);
  return made;
}

struct Comprehension {
  MacroKind kind;
  std::uint32_t position;
  Node range;
  std::string first;
  std::string second;
};

Node result(const Comprehension& made) {
  return identifier(kResultVariable, made.position);
}

Node finish(Comprehension made, Node initial, Node condition, Node step, Node value) {
  return {.kind = NodeKind::kComprehension,
          .macro = made.kind,
          .position = made.position,
          .name = std::move(made.first),
          .second = std::move(made.second),
          .children = nodes(std::move(made.range), std::move(initial), std::move(condition), std::move(step),
                            std::move(value))};
}

Node all(Comprehension made, Node predicate) {
  const std::uint32_t at = made.position;
  Node condition = call("@not_strictly_false", at, nodes(result(made)));
  Node step = call("_&&_", at, nodes(result(made), std::move(predicate)));
  Node value = result(made);
  return finish(std::move(made), constant(Value(true), at), std::move(condition), std::move(step), std::move(value));
}

Node exists(Comprehension made, Node predicate) {
  const std::uint32_t at = made.position;
  Node condition = call("@not_strictly_false", at, nodes(call("!_", at, nodes(result(made)))));
  Node step = call("_||_", at, nodes(result(made), std::move(predicate)));
  Node value = result(made);
  return finish(std::move(made), constant(Value(false), at), std::move(condition), std::move(step), std::move(value));
}

Node exists_one(Comprehension made, Node predicate) {
  const std::uint32_t at = made.position;
  const Value kOne(std::int64_t{1});
  Node sum = call("_+_", at, nodes(result(made), constant(kOne, at)));
  Node step = call("_?_:_", at, nodes(std::move(predicate), std::move(sum), result(made)));
  Node value = call("_==_", at, nodes(result(made), constant(kOne, at)));
  return finish(std::move(made), constant(Value(std::int64_t{0}), at), constant(Value(true), at), std::move(step),
                std::move(value));
}

/// `step` under the condition of the filter; null: there is no filter.
Node filtered(const Comprehension& made, std::optional<Node> filter, Node step) {
  if (!filter) return step;
  return call("_?_:_", made.position, nodes(*std::move(filter), std::move(step), result(made)));
}

Node list_of(Comprehension made, std::optional<Node> filter, Node element) {
  const std::uint32_t at = made.position;
  Node list{.kind = NodeKind::kList, .position = at, .children = nodes(std::move(element))};
  Node sum = call("_+_", at, nodes(result(made), std::move(list)));
  Node step = filtered(made, std::move(filter), std::move(sum));
  Node value = result(made);
  return finish(std::move(made), {.kind = NodeKind::kList, .position = at}, constant(Value(true), at), std::move(step),
                std::move(value));
}

Node map_of(Comprehension made, std::optional<Node> filter, std::vector<Node> inserted) {
  const std::uint32_t at = made.position;
  inserted.insert(inserted.begin(), result(made));
  Node step = filtered(made, std::move(filter), call("cel.@mapInsert", at, std::move(inserted)));
  Node value = result(made);
  return finish(std::move(made), {.kind = NodeKind::kMap, .position = at}, constant(Value(true), at), std::move(step),
                std::move(value));
}

enum class Shape : std::uint8_t {
  kHas,
  kAll,
  kExists,
  kExistsOne,
  kMap,
  kFilter,
  kOptMap,
  kOptFlatMap,
  kTransformList,
  kTransformMap,
  kTransformMapEntry,
};

struct Macro {
  std::string_view name;
  bool member;
  std::size_t arguments;
  std::size_t variables;
  Shape shape;
  bool stored = false;  // allowed in expressions that are stored already
};

constexpr std::array kMacros = std::to_array<Macro>({
    {"has", false, 1, 0, Shape::kHas},
    {"all", true, 2, 1, Shape::kAll},
    {"exists", true, 2, 1, Shape::kExists},
    {"exists_one", true, 2, 1, Shape::kExistsOne},
    {"map", true, 2, 1, Shape::kMap},
    {"map", true, 3, 1, Shape::kMap},
    {"filter", true, 2, 1, Shape::kFilter},
    {"optMap", true, 2, 1, Shape::kOptMap},
    {"optFlatMap", true, 2, 1, Shape::kOptFlatMap},
    {"all", true, 3, 2, Shape::kAll, true},
    {"exists", true, 3, 2, Shape::kExists, true},
    {"exists_one", true, 3, 2, Shape::kExistsOne, true},
    {"existsOne", true, 3, 2, Shape::kExistsOne, true},
    {"transformList", true, 3, 2, Shape::kTransformList, true},
    {"transformList", true, 4, 2, Shape::kTransformList, true},
    {"transformMap", true, 3, 2, Shape::kTransformMap, true},
    {"transformMap", true, 4, 2, Shape::kTransformMap, true},
    {"transformMapEntry", true, 3, 2, Shape::kTransformMapEntry, true},
    {"transformMapEntry", true, 4, 2, Shape::kTransformMapEntry, true},
});

MacroKind kind_of(Shape shape) {
  if (shape == Shape::kAll) return MacroKind::kAll;
  if (shape == Shape::kExists) return MacroKind::kExists;
  if (shape == Shape::kExistsOne) return MacroKind::kExistsOne;
  const bool map = shape == Shape::kTransformMap || shape == Shape::kTransformMapEntry;
  return map ? MacroKind::kMap : MacroKind::kList;
}

/// Variables are simple names, and two of them differ.
bool check_variables(const Node& made, const Macro& macro, std::vector<SyntaxError>& problems) {
  for (std::size_t i = 0; i < macro.variables; ++i) {
    const Node& name = made.children[1 + i];
    if (name.kind == NodeKind::kIdentifier) continue;
    problems.push_back({.position = name.position, .message = "argument must be a simple name"});
    return false;
  }
  if (macro.variables == 2 && made.children[1].name == made.children[2].name) {
    problems.push_back({.position = made.children[2].position,
                        .message = fmt::format("duplicate variable name: {}", made.children[2].name)});
    return false;
  }
  return true;
}

Node presence(Node made, std::vector<SyntaxError>& problems) {
  Node& selected = made.children[0];
  if (selected.kind == NodeKind::kSelect) {
    selected.kind = NodeKind::kPresence;
    selected.position = made.position;
    Node taken = std::move(selected);
    return taken;
  }
  // The error is reported at the beginning of the argument that is no name.
  const Node* at = &selected;
  while (at->kind == NodeKind::kCall && at->children.size() == 2 && at->children[1].kind == NodeKind::kMissing) {
    at = &at->children[0];
  }
  problems.push_back({.position = at->position, .message = "invalid argument to has() macro"});
  return {.kind = NodeKind::kMissing};
}

Node optional_map(Node made, NodeKind kind) {
  return {.kind = kind,
          .position = made.position,
          .name = made.children[1].name,
          .children = nodes(std::move(made.children[0]), std::move(made.children[2]))};
}

Node looped(Node made, const Macro& macro) {
  std::vector<Node>& given = made.children;
  Comprehension comprehension{.kind = kind_of(macro.shape),
                              .position = made.position,
                              .range = std::move(given[0]),
                              .first = given[1].name,
                              .second = macro.variables == 2 ? given[2].name : std::string()};
  const std::size_t body = 1 + macro.variables;
  std::optional<Node> filter;
  const bool maps = macro.shape == Shape::kMap || macro.shape >= Shape::kTransformList;
  if (maps && given.size() == body + 2) filter = std::move(given[body]);
  Node value = std::move(given.back());
  if (macro.shape == Shape::kAll) return all(std::move(comprehension), std::move(value));
  if (macro.shape == Shape::kExists) return exists(std::move(comprehension), std::move(value));
  if (macro.shape == Shape::kExistsOne) return exists_one(std::move(comprehension), std::move(value));
  if (macro.shape == Shape::kFilter) {
    Node element = std::move(given[1]);
    return list_of(std::move(comprehension), std::move(value), std::move(element));
  }
  if (macro.shape == Shape::kTransformMap) {
    Node key = identifier(comprehension.first, made.position);
    return map_of(std::move(comprehension), std::move(filter), nodes(std::move(key), std::move(value)));
  }
  if (macro.shape == Shape::kTransformMapEntry) {
    return map_of(std::move(comprehension), std::move(filter), nodes(std::move(value)));
  }
  return list_of(std::move(comprehension), std::move(filter), std::move(value));
}

}  // namespace

void expand_macro(Node& call, Macros macros, std::vector<SyntaxError>& problems) {
  const std::size_t arguments = call.children.size() - (call.member ? 1 : 0);
  const auto* macro = std::ranges::find_if(kMacros, [&](const Macro& one) {
    return one.name == call.name && one.member == call.member && one.arguments == arguments &&
           (!one.stored || macros == Macros::kOfStoredExpressions);
  });
  if (macro == kMacros.end()) return;
  if (!check_variables(call, *macro, problems)) {
    call = {.kind = NodeKind::kMissing};
    return;
  }
  Node made = std::move(call);
  if (macro->shape == Shape::kHas) {
    call = presence(std::move(made), problems);
  } else if (macro->shape == Shape::kOptMap) {
    call = optional_map(std::move(made), NodeKind::kOptMap);
  } else if (macro->shape == Shape::kOptFlatMap) {
    call = optional_map(std::move(made), NodeKind::kOptFlatMap);
  } else {
    call = looped(std::move(made), *macro);
  }
}

}  // namespace spillway::cel
