#include "policy/cel/checker.h"

#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::size_t kPatternsMax = 64;  // of one expression; those beyond are compiled when they are needed

struct Given {
  std::string_view name;
  Variable variable;
  TypeKind type;
};

constexpr std::array<Given, 7> kVariables{
    {{"object", Variable::kObject, TypeKind::kDyn},
     {"oldObject", Variable::kOldObject, TypeKind::kDyn},
     {"request", Variable::kRequest, TypeKind::kRequest},
     {"authorizer", Variable::kAuthorizer, TypeKind::kAuthorizer},
     {"authorizer.requestResource", Variable::kRequestResource, TypeKind::kResourceCheck},
     {"params", Variable::kParams, TypeKind::kDyn},
     {"namespaceObject", Variable::kNamespaceObject, TypeKind::kObject}}};

constexpr std::array<std::string_view, 17> kTypeNames{"bool",
                                                      "bytes",
                                                      "double",
                                                      "google.protobuf.Duration",
                                                      "google.protobuf.Timestamp",
                                                      "int",
                                                      "kubernetes.Quantity",
                                                      "kubernetes.URL",
                                                      "list",
                                                      "map",
                                                      "net.CIDR",
                                                      "net.IP",
                                                      "null_type",
                                                      "optional_type",
                                                      "string",
                                                      "type",
                                                      "uint"};

/// "a.b.c"; empty: it is no such chain.
std::string qualified_name(const Node& node) {
  if (node.kind == NodeKind::kIdentifier) return node.name;
  if (node.kind != NodeKind::kSelect) return {};
  std::string operand = qualified_name(node.children[0]);
  return operand.empty() ? operand : operand + "." + node.name;
}

const Node& first_identifier(const Node& node) {
  return node.kind == NodeKind::kSelect ? first_identifier(node.children[0]) : node;
}

bool is_constant_text(const Node& node) {
  return node.kind == NodeKind::kConstant && node.constant.is(Kind::kString);
}

class Checker {
 public:
  Checker(std::vector<SyntaxError>& problems, const Environment& environment)
      : problems_(problems), environment_(environment) {}

  Type visit(Node& node) {
    switch (node.kind) {
      case NodeKind::kConstant:
        return constant(node);
      case NodeKind::kIdentifier:
        return identifier(node);
      case NodeKind::kSelect:
        return select(node);
      case NodeKind::kPresence:
        return presence(node);
      case NodeKind::kCall:
        return call(node);
      case NodeKind::kList:
        return list_of(common(node, 0, 1));
      case NodeKind::kMap:
        return map(node);
      case NodeKind::kAnd:
      case NodeKind::kOr:
        for (Node& child : node.children) require_bool(child);
        return {.kind = TypeKind::kBool};
      case NodeKind::kTernary:
        return ternary(node);
      case NodeKind::kAll:
      case NodeKind::kExists:
      case NodeKind::kExistsOne:
      case NodeKind::kMapMacro:
      case NodeKind::kFilter:
        return comprehension(node);
      case NodeKind::kOptSelect:
        return optional_select(node);
      case NodeKind::kOptEntry:
        return optional_entry(node);
      case NodeKind::kOptMap:
      case NodeKind::kOptFlatMap:
        return mapped_optional(node);
    }
    return {};
  }

 private:
  struct Local {
    std::string_view name;
    Type type;
  };

  void problem(const Node& node, std::string message) {
    if (problems_.size() < kProblemsMax)
      problems_.push_back({.position = node.position, .message = std::move(message)});
  }

  void mismatch(const Node& node, const Type& wanted, const Type& given) {
    problem(node, fmt::format("expected type '{}' but found '{}'", to_text(wanted), to_text(given)));
  }

  static Type constant(const Node& node) {
    if (node.constant.is(Kind::kType)) return {.kind = TypeKind::kType};
    return {.kind = static_cast<TypeKind>(static_cast<int>(node.constant.kind()) + 1)};
  }

  std::optional<std::size_t> local(std::string_view name) const {
    for (std::size_t i = locals_.size(); i > 0; --i) {
      if (locals_[i - 1].name == name) return i - 1;
    }
    return std::nullopt;
  }

  /// What is declared under that name outside of macros.
  std::optional<Type> declared(Node& node, std::string_view name) const {
    const Type* self = environment_.self;
    if (self != nullptr && (name == "self" || name == "oldSelf")) {
      node.variable = name == "self" ? Variable::kSelf : Variable::kOldSelf;
      const bool may_be_absent = name == "oldSelf" && environment_.optional_old_self;
      return may_be_absent ? optional_of(*self) : *self;
    }
    const auto* given = std::ranges::find(kVariables, name, &Given::name);
    if (self == nullptr && given != kVariables.end() && is_there(given->variable)) {
      node = {.kind = NodeKind::kIdentifier, .position = node.position, .name = std::string(name)};
      node.variable = given->variable;
      return given->variable == Variable::kNamespaceObject ? namespace_type() : Type{.kind = given->type};
    }
    const auto* type = std::ranges::find(kTypeNames, name);
    if (type == kTypeNames.end()) return std::nullopt;
    node = {.kind = NodeKind::kConstant, .position = node.position, .constant = Value(TypeName{*type})};
    return Type{.kind = TypeKind::kType};
  }

  bool is_there(Variable variable) const {
    switch (variable) {
      case Variable::kAuthorizer:
      case Variable::kRequestResource:
        return environment_.authorizer;
      case Variable::kParams:
        return environment_.params;
      case Variable::kNamespaceObject:
        return environment_.namespace_object;
      case Variable::kLocal:
      case Variable::kObject:
      case Variable::kOldObject:
      case Variable::kRequest:
      case Variable::kSelf:
      case Variable::kOldSelf:
      case Variable::kVariables:
        return true;
    }
    return true;
  }

  bool is_variables(const Node& node) const {
    return environment_.variables != nullptr && node.kind == NodeKind::kIdentifier && node.name == "variables" &&
           !local(node.name);
  }

  /// variables.NAME becomes one node.
  Type composed(Node& node) {
    const std::vector<NamedVariable>& known = *environment_.variables;
    for (std::size_t i = known.size(); i > 0; --i) {
      if (known[i - 1].name != node.name) continue;
      node = {.kind = NodeKind::kIdentifier, .position = node.position, .name = std::move(node.name)};
      node.variable = Variable::kVariables;
      node.slot = i - 1;
      return known[i - 1].type;
    }
    problem(node, fmt::format("undefined field '{}'", node.name));
    return {};
  }

  Type presence(Node& node) {
    if (!is_variables(node.children[0])) {
      visit_select(node);
    } else if (composed(node); node.kind == NodeKind::kIdentifier) {
      node = {.kind = NodeKind::kConstant, .position = node.position, .constant = Value(true)};
    }
    return {.kind = TypeKind::kBool};
  }

  Type identifier(Node& node) {
    if (const std::optional<std::size_t> slot = local(node.name)) {
      node.slot = *slot;
      return locals_[*slot].type;
    }
    const std::string name = node.name;
    if (const std::optional<Type> type = declared(node, name)) return *type;
    problem(node, fmt::format("undeclared reference to '{}' (in container '')", name));
    return {};
  }

  Type select(Node& node) {
    if (is_variables(node.children[0])) return composed(node);
    const std::string name = qualified_name(node);
    if (!name.empty() && !local(first_identifier(node).name)) {
      if (const std::optional<Type> type = declared(node, name)) return *type;
    }
    return visit_select(node);
  }

  /// A member of what may be absent may be absent itself.
  Type visit_select(Node& node) {
    const Type operand = visit(node.children[0]);
    if (operand.kind == TypeKind::kOptional) return optional_of(member(node, operand.of[0]));
    return member(node, operand);
  }

  /// variables.?NAME is there, if it is declared.
  Type optional_select(Node& node) {
    if (is_variables(node.children[0])) {
      problem(node, "variables are never absent");
      return {};
    }
    const Type operand = visit(node.children[0]);
    return optional_of(member(node, operand.kind == TypeKind::kOptional ? operand.of[0] : operand));
  }

  Type optional_entry(Node& node) { return value_of(node.children[0], visit(node.children[0])); }

  /// What an optional value is if it is present.
  Type value_of(const Node& node, const Type& type) {
    if (type.kind == TypeKind::kOptional) return type.of[0];
    if (type.kind != TypeKind::kDyn) mismatch(node, optional_of({}), type);
    return {};
  }

  Type mapped_optional(Node& node) {
    const Type value = value_of(node.children[0], visit(node.children[0]));
    node.slot = locals_.size();
    locals_.push_back({.name = node.name, .type = value});
    Type made = visit(node.children[1]);
    locals_.pop_back();
    if (node.kind == NodeKind::kOptMap) return optional_of(std::move(made));
    return optional_of(value_of(node.children[1], made));
  }

  Type member(const Node& node, const Type& operand) {
    if (operand.kind == TypeKind::kDyn) return {};
    if (operand.kind == TypeKind::kMap) return operand.of[1];
    if (operand.kind == TypeKind::kObject) {
      if (const Type* field = find_field(operand, node.name)) return *field;
      problem(node, fmt::format("undefined field '{}'", node.name));
      return {};
    }
    if (is_message(operand.kind)) {
      if (std::optional<Type> field = field_type(operand.kind, node.name)) return *std::move(field);
      problem(node, fmt::format("undefined field '{}'", node.name));
      return {};
    }
    problem(node, fmt::format("type '{}' does not support field selection", to_text(operand)));
    return {};
  }

  void require_bool(Node& node) {
    const Type type = visit(node);
    if (type.kind != TypeKind::kBool && type.kind != TypeKind::kDyn) mismatch(node, {.kind = TypeKind::kBool}, type);
  }

  /// The type of every child from `first` on, in steps: all of them have one.
  Type common(Node& node, std::size_t first, std::size_t step) {
    Bindings bindings;
    const Type parameter{.kind = TypeKind::kParameterA};
    for (std::size_t i = first; i < node.children.size(); i += step) {
      const Type given = visit(node.children[i]);
      if (!assignable(parameter, given, bindings)) mismatch(node.children[i], *bindings[0], given);
    }
    return resolved(parameter, bindings);
  }

  Type map(Node& node) {
    Type key = common(node, 0, 2);
    Type value = common(node, 1, 2);
    const bool simple = key.kind == TypeKind::kDyn || key.kind == TypeKind::kBool || key.kind == TypeKind::kInt ||
                        key.kind == TypeKind::kUint || key.kind == TypeKind::kString;
    if (!simple) problem(node, fmt::format("unsupported key type: {}", to_text(key)));
    return map_of(std::move(key), std::move(value));
  }

  Type ternary(Node& node) {
    require_bool(node.children[0]);
    return common(node, 1, 1);
  }

  Type comprehension(Node& node) {
    const Type range = visit(node.children[0]);
    if (range.kind != TypeKind::kDyn && range.kind != TypeKind::kList && range.kind != TypeKind::kMap) {
      problem(node.children[0],
              fmt::format("expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                          to_text(range)));
    }
    const Type element = range.of.empty() ? Type{} : range.of[0];
    node.slot = locals_.size();
    locals_.push_back({.name = node.name, .type = element});
    Type made{.kind = TypeKind::kBool};
    if (node.kind == NodeKind::kMapMacro) {
      if (node.children.size() == 3) require_bool(node.children[1]);
      made = list_of(visit(node.children.back()));
    } else {
      require_bool(node.children[1]);
      if (node.kind == NodeKind::kFilter) made = list_of(element);
    }
    locals_.pop_back();
    return made;
  }

  /// sets.contains(a, b) and such are no members of anything.
  bool is_foreign(const Node& node) {
    const std::string name = node.member ? qualified_name(node.children[0]) : std::string();
    const std::string full = name.empty() ? node.name : name + "." + node.name;
    if (!is_left_out(full) && !(is_left_out(node.name) && !is_function(node.name))) return false;
    problem(node,
            fmt::format("the function '{}' is not supported by this server", is_left_out(full) ? full : node.name));
    return true;
  }

  /// "sets" of sets.contains(a, b) is no variable: it is a part of the function's name.
  void name_whole(Node& node) const {
    if (!node.member || node.children[0].kind != NodeKind::kIdentifier || local(node.children[0].name)) return;
    std::string full = node.children[0].name + "." + node.name;
    if (!is_function(full)) return;
    node.name = std::move(full);
    node.member = false;
    node.children.erase(node.children.begin());
  }

  Type call(Node& node) {
    if (is_foreign(node)) return {};
    name_whole(node);
    std::vector<Type> given;
    for (Node& child : node.children) given.push_back(visit(child));
    node.overloads = overloads_of(node.name, node.member, given.size());
    if (node.overloads.empty() && !is_function(node.name)) {
      problem(node, fmt::format("undeclared reference to '{}' (in container '')", node.name));
      return {};
    }
    const std::optional<Type> result = result_of(node, given);
    if (!result) {
      problem(node, fmt::format("found no matching overload for '{}' applied to '{}'", node.name, shown(node, given)));
      return {};
    }
    check_constants(node);
    return *result;
  }

  /// dyn where several overloads fit that differ in their results.
  static std::optional<Type> result_of(const Node& node, const std::vector<Type>& given) {
    std::optional<Type> result;
    for (const Overload& overload : node.overloads) {
      Bindings bindings;
      const bool fitting = std::ranges::equal(overload.parameters, given, [&](const Type& wanted, const Type& type) {
        return assignable(wanted, type, bindings);
      });
      if (!fitting) continue;
      Type made = resolved(overload.result, bindings);
      if (result && !(*result == made)) return Type{};
      result = std::move(made);
    }
    return result;
  }

  static std::string shown(const Node& node, const std::vector<Type>& given) {
    std::string text;
    for (std::size_t i = node.member ? 1 : 0; i < given.size(); ++i) {
      text += (text.empty() ? "" : ", ") + to_text(given[i]);
    }
    return node.member ? fmt::format("{}.({})", to_text(given[0]), text) : fmt::format("({})", text);
  }

  /// Patterns and times that are written down are good or wrong once and for all.
  void check_constants(Node& node) {
    if ((node.name == "matches" || node.name == "find" || node.name == "findAll") && node.children.size() > 1 &&
        is_constant_text(node.children[1]) && ++patterns_ <= kPatternsMax) {
      Result<Pattern> pattern = Pattern::compile(node.children[1].constant.string());
      if (!pattern) {
        return problem(node.children[1], fmt::format("invalid {} argument: {}", node.name, pattern.error().text()));
      }
      node.pattern = *std::move(pattern);
    }
    if ((node.name == "duration" || node.name == "timestamp") && is_constant_text(node.children[0])) {
      Budget budget(1'000);
      const auto overload = std::ranges::find_if(
          node.overloads, [](const Overload& one) { return one.parameters[0].kind == TypeKind::kString; });
      const Value& text = node.children[0].constant;
      if (!overload->function({.arguments = {&text, 1}, .budget = budget})) {
        problem(node.children[0], fmt::format("invalid {} argument", node.name));
      }
    }
  }

  std::vector<SyntaxError>& problems_;
  const Environment& environment_;
  std::vector<Local> locals_;
  std::size_t patterns_ = 0;
};

}  // namespace

Type check(Node& node, std::vector<SyntaxError>& problems, const Environment& environment) {
  return Checker(problems, environment).visit(node);
}

}  // namespace spillway::cel
