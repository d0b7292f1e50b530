#include "policy/cel/planner.h"

#include "policy/cel/format_string.h"
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::cel {

namespace {

// patterns compiled in advance for one expression; further ones are compiled at each use
constexpr std::size_t kPatternsMax = 64;
constexpr std::uint64_t kLiteralUnits = 100'000;

bool is_known(const Node& node) {
  return node.folded || node.kind == NodeKind::kConstant;
}

bool is_known_text(const Node& node) {
  return is_known(node) && node.constant.is(Kind::kString);
}

/// Functions that turn a value of one type into one of another.
bool converts(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames{"bool", "bytes",  "double",    "duration", "dyn",
                                                           "int",  "string", "timestamp", "type",     "uint"};
  return std::ranges::binary_search(kNames, name);
}

bool has_pattern(const Node& node) {
  return node.kind == NodeKind::kCall && node.children.size() > 1 &&
         (node.name == "matches" || node.name == "find" || node.name == "findAll");
}

Type element_type(const Node& node) {
  return node.kind == NodeKind::kOptEntry && !node.type.of.empty() ? node.type.of[0] : node.type;
}

class LiteralCheck {
 public:
  explicit LiteralCheck(std::vector<SyntaxError>& problems) : problems_(problems) {}

  void visit(const Node& node) {
    const bool format = node.kind == NodeKind::kCall && node.name == "format";
    if (format) ++formats_;
    if (node.kind == NodeKind::kCall) call(node);
    if (formats_ == 0 && node.kind == NodeKind::kList) same_types(node, 0, 1);
    if (formats_ == 0 && node.kind == NodeKind::kMap) {
      same_types(node, 0, 2);
      same_types(node, 1, 2);
    }
    for (const Node& child : node.children) visit(child);
    if (format) --formats_;
  }

 private:
  void problem(const Node& node, std::string message) {
    problems_.push_back({.position = node.position, .message = std::move(message)});
  }

  /// Mixed lists are written with dyn(…).
  void same_types(const Node& node, std::size_t first, std::size_t step) {
    for (std::size_t i = first + step; i < node.children.size(); i += step) {
      const Type wanted = element_type(node.children[first]);
      const Type given = element_type(node.children[i]);
      if (wanted == given) continue;
      return problem(node.children[i],
                     fmt::format("expected type '{}' but found '{}'", to_text(wanted), to_text(given)));
    }
  }

  void call(const Node& node) {
    if ((node.name == "duration" || node.name == "timestamp") && node.children.size() == 1) time(node);
    if (node.name == "matches" && is_known_text(node.children.back())) pattern(node);
    if (node.name == "format" && node.member && node.children.size() == 2) {
      for (SyntaxError& error : check_format(node)) problems_.push_back(std::move(error));
    }
  }

  void time(const Node& node) {
    const Node& argument = node.children[0];
    if (argument.kind != NodeKind::kConstant) return;
    for (const Overload* overload : node.overloads) {
      if (!fits(overload->parameters[0].kind, argument.constant)) continue;
      Budget budget(kLiteralUnits);
      if (overload->function({.arguments = {&argument.constant, 1}, .budget = budget})) return;
      return problem(argument, fmt::format("invalid {} argument", node.name));
    }
  }

  void pattern(const Node& node) {
    if (++patterns_ > kPatternsMax) return;
    const Node& argument = node.children.back();
    const Result<Pattern> pattern = Pattern::compile(argument.constant.string());
    if (pattern) return;
    // Errors about bounds that only this project has are in our words.
    const bool bound = argument.constant.string().size() > Pattern::kTextMax;
    problem(argument,
            bound ? fmt::format("invalid matches argument: {}", pattern.error().message) : "invalid matches argument");
  }

  std::vector<SyntaxError>& problems_;
  std::size_t formats_ = 0;
  std::size_t patterns_ = 0;
};

class Planner {
 public:
  Result<void> visit(Node& node) {
    for (Node& child : node.children) SPILLWAY_TRY_VOID(visit(child));
    if (node.kind == NodeKind::kList) fold_list(node);
    if (node.kind == NodeKind::kMap) fold_map(node);
    if (node.kind != NodeKind::kCall) return {};
    if (has_pattern(node)) return compile_pattern(node);
    if (node.name == "@in") plan_search(node);
    return node.children.size() == 1 && converts(node.name) ? convert(node) : Result<void>();
  }

 private:
  static void become(Node& node, Value value) {
    node.constant = std::move(value);
    node.folded = true;
  }

  static void fold_list(Node& node) {
    if (!std::ranges::all_of(node.children, is_known)) return;
    std::vector<Value> elements;
    for (const Node& child : node.children) elements.push_back(child.constant);
    become(node, Value(List(std::move(elements))));
  }

  /// Maps are small; of two equal keys the last one counts.
  static void fold_map(Node& node) {
    constexpr std::size_t kEntriesMax = 256;
    if (node.children.size() > 2 * kEntriesMax || !std::ranges::all_of(node.children, is_known)) return;
    Map::Entries entries;
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const Value& key = node.children[i].constant;
      if (!key.is(Kind::kBool) && !key.is_number() && !key.is(Kind::kString) && !key.is(Kind::kNull)) return;
      const auto known = std::ranges::find_if(entries, [&](const auto& entry) {
        return entry.first.kind() == key.kind() && (key.is(Kind::kNull) || compare(entry.first, key) == 0);
      });
      if (known == entries.end()) {
        entries.emplace_back(key, node.children[i + 1].constant);
      } else {
        known->second = node.children[i + 1].constant;
      }
    }
    become(node, Value(Map(std::move(entries))));
  }

  /// A search in a constant list costs nothing; in an empty one it finds nothing.
  static void plan_search(Node& node) {
    const bool in_list = node.overloads.size() == 1 && node.overloads[0]->parameters[1].kind == TypeKind::kList;
    if (!in_list || !is_known(node.children[1]) || !node.children[1].constant.is(Kind::kList)) return;
    const List& list = node.children[1].constant.as<List>();
    if (list.size() == 0) return become(node, Value(false));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Value element = list.at(i);
      if (!element.is(Kind::kBool) && !element.is_number() && !element.is(Kind::kString)) return;
    }
    node.free = true;
  }

  static Result<void> convert(Node& node) {
    const Node& argument = node.children[0];
    if (!is_known(argument)) return {};
    for (const Overload* overload : node.overloads) {
      if (!fits(overload->parameters[0].kind, argument.constant)) continue;
      Budget budget(kLiteralUnits);
      SPILLWAY_TRY(value, overload->function({.arguments = {&argument.constant, 1}, .budget = budget}));
      become(node, std::move(value));
      return {};
    }
    return evaluation_error(fmt::format("no such overload: {}({})", node.name, type_name(argument.constant)));
  }

  Result<void> compile_pattern(Node& node) {
    if (!is_known_text(node.children[1]) || ++patterns_ > kPatternsMax) return {};
    Result<Pattern> pattern = Pattern::compile(node.children[1].constant.string());
    if (!pattern) return pattern.error();
    node.pattern = *std::move(pattern);
    return {};
  }

  std::size_t patterns_ = 0;
};

}  // namespace

void check_literals(const Node& root, std::vector<SyntaxError>& problems) {
  LiteralCheck(problems).visit(root);
}

Result<void> plan(Node& root) {
  return Planner().visit(root);
}

}  // namespace spillway::cel
