#include "policy/cel/checker.h"

#include "policy/cel/functions.h"
#include "policy/cel/unification.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::size_t kTypePartsMax = 2'000;  // limit for one type: a map of maps of maps has many parts

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

/// The name of a type in expressions, with the type.
struct NamedType {
  std::string_view name;
  std::string_view type;
};

constexpr std::array<NamedType, 17> kTypeNames{{{"bool", "bool"},
                                                {"bytes", "bytes"},
                                                {"double", "double"},
                                                {"google.protobuf.Duration", "duration"},
                                                {"google.protobuf.Timestamp", "timestamp"},
                                                {"int", "int"},
                                                {"kubernetes.Quantity", "kubernetes.Quantity"},
                                                {"kubernetes.URL", "kubernetes.URL"},
                                                {"list", "list(dyn)"},
                                                {"map", "map(dyn, dyn)"},
                                                {"net.CIDR", "net.CIDR"},
                                                {"net.IP", "net.IP"},
                                                {"null_type", "null"},
                                                {"optional_type", "optional_type(dyn)"},
                                                {"string", "string"},
                                                {"type", "type"},
                                                {"uint", "uint"}}};

/// The text of a chain of names, "a.b.c"; empty: the node is not such a chain.
std::string qualified_name(const Node& node) {
  if (node.kind == NodeKind::kIdentifier) return node.name;
  if (node.kind != NodeKind::kSelect) return {};
  std::string operand = qualified_name(node.children[0]);
  return operand.empty() ? operand : operand + "." + node.name;
}

const Node& first_identifier(const Node& node) {
  return node.kind == NodeKind::kSelect ? first_identifier(node.children[0]) : node;
}

std::size_t parts_of(const Type& type) {
  return 1 + type.of.count();
}

bool is_wild(const Type& type) {
  return type.kind == TypeKind::kDyn || type.kind == TypeKind::kError;
}

/// Names that a macro declares hide those around it.
struct Local {
  std::string_view name;
  Type type;
};

class Checker {
 public:
  Checker(std::vector<SyntaxError>& problems, const Environment& environment)
      : problems_(problems), environment_(environment) {}

  void check(Node& root) {
    visit(root);
    fill_types(root);
  }

 private:
  void fill_types(Node& node) {
    node.type = types_.resolved(node.type);
    for (Node& child : node.children) fill_types(child);
  }

  void problem(const Node& node, std::string message) {
    if (problems_.size() <= kProblemsMax)
      problems_.push_back({.position = node.position, .message = std::move(message)});
  }

  void mismatch(const Node& node, const Type& wanted, const Type& given) {
    problem(node, fmt::format("expected type '{}' but found '{}'", shown(wanted), shown(given)));
  }

  std::string shown(const Type& type) const {
    constexpr std::string_view kSelf = "selfType0";
    std::string text = to_text(types_.resolved(type));
    const std::string_view name = environment_.self_name;
    if (name.empty()) return text;
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + kSelf.size())) {
      text.replace(at, name.size(), kSelf);
    }
    return text;
  }

  void set(Node& node, Type type) {
    if (parts_of(type) > kTypePartsMax) {
      problem(node, fmt::format("the type of the expression has more than {} parts", kTypePartsMax));
      type = {.kind = TypeKind::kError};
    }
    node.type = std::move(type);
  }

  /// Determines the type of the node.
  const Type& visit(Node& node) {
    Type type = type_of(node);
    set(node, std::move(type));
    return node.type;
  }

  Type type_of(Node& node) {
    switch (node.kind) {
      case NodeKind::kMissing:
        return {.kind = TypeKind::kError};
      case NodeKind::kConstant:
        return {.kind = static_cast<TypeKind>(static_cast<int>(node.constant.kind()) + 1)};
      case NodeKind::kIdentifier:
        return identifier(node);
      case NodeKind::kSelect:
        return select(node);
      case NodeKind::kPresence:
        return presence(node);
      case NodeKind::kCall:
        return call(node);
      case NodeKind::kList:
        return list(node);
      case NodeKind::kMap:
        return map(node);
      case NodeKind::kComprehension:
        return comprehension(node);
      case NodeKind::kOptSelect:
        return optional_select(node);
      case NodeKind::kOptEntry:
        return visit(node.children[0]);
      case NodeKind::kOptMap:
      case NodeKind::kOptFlatMap:
        return mapped_optional(node);
    }
    return {};
  }

  std::optional<std::size_t> local(std::string_view name) const {
    for (std::size_t i = locals_.size(); i > 0; --i) {
      if (locals_[i - 1].name == name) return i - 1;
    }
    return std::nullopt;
  }

  /// The type of a name declared outside of macros.
  std::optional<Type> declared(Node& node, std::string_view name) const {
    if (std::optional<Type> type = variable(node, name)) return type;
    const auto* type = std::ranges::find(kTypeNames, name, &NamedType::name);
    if (type == kTypeNames.end()) return std::nullopt;
    node = {.kind = NodeKind::kConstant, .position = node.position, .constant = Value(TypeName{type->name})};
    Type made{.kind = TypeKind::kType};
    made.of.push_back(parse_type(type->type));
    return made;
  }

  std::optional<Type> variable(Node& node, std::string_view name) const {
    const auto become = [&](Variable variable, std::size_t slot) {
      node = {.kind = NodeKind::kIdentifier, .position = node.position, .name = std::string(name)};
      node.variable = variable;
      node.slot = slot;
    };
    if (environment_.given != nullptr) {
      const auto found = std::ranges::find(*environment_.given, name, &NamedVariable::name);
      if (found == environment_.given->end()) return std::nullopt;
      become(Variable::kGiven, static_cast<std::size_t>(found - environment_.given->begin()));
      return found->type;
    }
    if (environment_.self != nullptr) {
      if (name != "self" && name != "oldSelf") return std::nullopt;
      become(name == "self" ? Variable::kSelf : Variable::kOldSelf, 0);
      const bool may_be_absent = name == "oldSelf" && environment_.optional_old_self;
      return may_be_absent ? optional_of(*environment_.self) : *environment_.self;
    }
    const auto* found = std::ranges::find(kVariables, name, &Given::name);
    if (found == kVariables.end() || !is_there(found->variable)) return std::nullopt;
    become(found->variable, 0);
    return type_of_variable(*found);
  }

  Type type_of_variable(const Given& given) const {
    const bool is_object = given.variable == Variable::kObject || given.variable == Variable::kOldObject;
    if (is_object && environment_.object != nullptr) return *environment_.object;
    if (given.variable == Variable::kParams && environment_.params_type != nullptr) return *environment_.params_type;
    if (given.variable == Variable::kNamespaceObject) return namespace_type();
    return {.kind = given.type};
  }

  bool is_there(Variable variable) const {
    if (variable == Variable::kAuthorizer) return environment_.authorizer;
    if (variable == Variable::kRequestResource) return environment_.authorizer && environment_.request_resource;
    if (variable == Variable::kParams) return environment_.params;
    return variable != Variable::kNamespaceObject || environment_.namespace_object;
  }

  bool is_variables(const Node& node) const {
    return environment_.variables != nullptr && node.kind == NodeKind::kIdentifier && node.name == "variables" &&
           !local(node.name);
  }

  /// Replaces variables.NAME by one node.
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
    return {.kind = TypeKind::kError};
  }

  Type presence(Node& node) {
    if (!is_variables(node.children[0])) {
      field(node);
    } else if (composed(node); node.kind == NodeKind::kIdentifier) {
      // A declared variable is present, but has() fails if its expression does.
      Node whole{.kind = NodeKind::kPresence, .position = node.position, .name = node.name};
      whole.variable = Variable::kVariables;
      whole.children.push_back(std::move(node));
      node = std::move(whole);
    }
    return {.kind = TypeKind::kBool};
  }

  Type identifier(Node& node) {
    if (const std::optional<std::size_t> slot = local(node.name)) {
      node.slot = *slot;
      return locals_[*slot].type;
    }
    const std::string name = node.name;
    if (std::optional<Type> type = declared(node, name)) return *std::move(type);
    problem(node, fmt::format("undeclared reference to '{}' (in container '')", name));
    return {.kind = TypeKind::kError};
  }

  Type select(Node& node) {
    if (is_variables(node.children[0])) return composed(node);
    const std::string name = qualified_name(node);
    if (!name.empty() && !local(first_identifier(node).name)) {
      if (std::optional<Type> type = declared(node, name)) return *std::move(type);
    }
    return field(node);
  }

  /// The type of a member; a member of an optional value is optional itself.
  Type field(Node& node) {
    const Type operand = types_.known(visit(node.children[0]));
    if (operand.kind == TypeKind::kOptional) return optional_of(member(node, operand.of[0]));
    return member(node, operand);
  }

  /// variables.?NAME: present if the variable is declared.
  Type optional_select(Node& node) {
    if (is_variables(node.children[0])) {
      problem(node, "variables are never absent");
      return {.kind = TypeKind::kError};
    }
    const Type operand = types_.known(visit(node.children[0]));
    return optional_of(member(node, operand.kind == TypeKind::kOptional ? operand.of[0] : operand));
  }

  Type member(Node& node, const Type& operand) {
    if (is_wild(operand)) return {};
    if (operand.kind == TypeKind::kVariable) {
      types_.assignable(Type{}, operand);
      return {};
    }
    if (operand.kind == TypeKind::kMap) return operand.of[1];
    if (operand.kind == TypeKind::kObject) {
      if (const Type* field = find_field(operand, node.name)) return *field;
      // Words that are kept for languages around this one may be written as they are.
      std::string escaped = is_reserved(node.name) ? "__" + node.name + "__" : std::string();
      const Type* field = escaped.empty() ? nullptr : find_field(operand, escaped);
      if (field != nullptr) {
        node.second = std::exchange(node.name, std::move(escaped));
        return *field;
      }
      problem(node, fmt::format("undefined field '{}'", node.name));
      return {.kind = TypeKind::kError};
    }
    if (is_message(operand.kind)) {
      if (std::optional<Type> field = field_type(operand.kind, node.name)) return *std::move(field);
      problem(node, fmt::format("undefined field '{}'", node.name));
      return {.kind = TypeKind::kError};
    }
    if (operand.kind >= TypeKind::kAuthorizer && operand.kind <= TypeKind::kDecision) {
      // As upstream, which declares these as objects with unknown members.
      problem(node, fmt::format("unexpected failed resolution of '{}'", shown(operand)));
      return {.kind = TypeKind::kError};
    }
    problem(node, fmt::format("type '{}' does not support field selection", shown(operand)));
    return {};
  }

  /// The common type of elements; dyn where they have none.
  Type joined(const std::optional<Type>& before, const Type& type) {
    if (!before) return type;
    return types_.assignable(*before, type) ? more_general(*before, type) : Type{};
  }

  /// The type of an element or value; for one that may be left out, the type inside its optional.
  Type entry(Node& node) {
    Type type = types_.known(visit(node));
    if (node.kind != NodeKind::kOptEntry) return type;
    if (type.kind == TypeKind::kOptional) return type.of[0];
    if (!is_wild(type)) mismatch(node, optional_of(type), type);
    return type;
  }

  Type list(Node& node) {
    std::optional<Type> element;
    for (Node& child : node.children) element = joined(element, entry(child));
    return list_of(element ? *std::move(element) : types_.fresh());
  }

  Type map(Node& node) {
    std::optional<Type> key;
    std::optional<Type> value;
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      key = joined(key, visit(node.children[i]));
      value = joined(value, entry(node.children[i + 1]));
    }
    Type key_type = key ? *std::move(key) : types_.fresh();
    return map_of(std::move(key_type), value ? *std::move(value) : types_.fresh());
  }

  /// The types of the variables of a loop over `range`: the first where the loop has one variable, both where it has
  /// two.
  std::pair<Type, Type> element_types(const Node& node, const Type& range) {
    const bool two = !node.second.empty();
    if (range.kind == TypeKind::kList) return {two ? Type{.kind = TypeKind::kInt} : range.of[0], range.of[0]};
    if (range.kind == TypeKind::kMap) return {range.of[0], range.of[1]};
    if (is_wild(range) || range.kind == TypeKind::kVariable) {
      types_.assignable(Type{}, range);
      return {};
    }
    problem(node.children[0],
            fmt::format("expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                        shown(range)));
    return {Type{.kind = TypeKind::kError}, Type{.kind = TypeKind::kError}};
  }

  Type comprehension(Node& node) {
    const Type range = types_.known(visit(node.children[0]));
    const Type made = visit(node.children[1]);
    node.slot = locals_.size();
    locals_.push_back({.name = kResultVariable, .type = made});
    auto [first, second] = element_types(node, range);
    locals_.push_back({.name = node.name, .type = std::move(first)});
    if (!node.second.empty()) locals_.push_back({.name = node.second, .type = std::move(second)});
    require(node.children[2], {.kind = TypeKind::kBool});
    require(node.children[3], made);
    locals_.resize(node.slot + 1);
    Type result = types_.known(visit(node.children[4]));
    locals_.resize(node.slot);
    return result;
  }

  void require(Node& node, const Type& type) {
    visit(node);
    if (!types_.assignable(type, node.type)) mismatch(node, type, node.type);
  }

  /// optMap(x, value) is hasValue() ? optional.of(value) : optional.none(), with x for what the value is.
  Type mapped_optional(Node& node) {
    const Type target = types_.known(visit(node.children[0]));
    if (target.kind != TypeKind::kOptional && !is_wild(target) && target.kind != TypeKind::kVariable) {
      no_overload(node, "hasValue", std::span(&target, 1), true);
    }
    node.slot = locals_.size();
    locals_.push_back({.name = node.name, .type = target.kind == TypeKind::kOptional ? target.of[0] : Type{}});
    Type made = types_.known(visit(node.children[1]));
    locals_.pop_back();
    if (node.kind == NodeKind::kOptMap) return optional_of(std::move(made));
    if (made.kind == TypeKind::kOptional || is_wild(made)) return made;
    const std::array<Type, 3> sides{Type{.kind = TypeKind::kBool}, made, optional_of(types_.fresh())};
    no_overload(node, "_?_:_", sides, false);
    return {.kind = TypeKind::kError};
  }

  /// "sets" of sets.contains(a, b) is no variable: it is a part of the function's name.
  void name_whole(Node& node) const {
    if (!node.member) return;
    const std::string operand = qualified_name(node.children[0]);
    if (operand.empty()) return;
    std::string full = operand + "." + node.name;
    if (!is_function(full)) return;
    node.name = std::move(full);
    node.member = false;
    node.children.erase(node.children.begin());
  }

  Type call(Node& node) {
    const std::size_t first = node.member ? 1 : 0;
    for (std::size_t i = first; i < node.children.size(); ++i) visit(node.children[i]);
    name_whole(node);
    if (node.member) visit(node.children[0]);
    if (!is_function(node.name)) {
      problem(node, fmt::format("undeclared reference to '{}' (in container '')", node.name));
      return {.kind = TypeKind::kError};
    }
    if (node.name == "_&&_" || node.name == "_||_") return connected(node);
    return resolve(node);
  }

  Type connected(Node& node) {
    const Type wanted{.kind = TypeKind::kBool};
    for (const Node& child : node.children) {
      if (!types_.assignable(child.type, wanted)) mismatch(child, wanted, child.type);
    }
    return wanted;
  }

  /// A type of a signature with variables for its parameters.
  static Type instance(const Type& type, const std::array<Type, 2>& parameters) {
    if (type.kind == TypeKind::kParameterA) return parameters[0];
    if (type.kind == TypeKind::kParameterB) return parameters[1];
    if (!type.of.has_unknown()) return type;
    Type made{.kind = type.kind, .of = {}, .fields = type.fields};
    for (const Type& part : type.of) made.of.push_back(instance(part, parameters));
    return made;
  }

  /// dyn where several overloads fit that differ in their results.
  Type resolve(Node& node) {
    std::vector<Type> given;
    for (const Node& child : node.children) given.push_back(child.type);
    std::optional<Type> result;
    for (const Overload& overload : overloads_of(node.name, node.member, given.size())) {
      std::array<Type, 2> parameters;
      if (overload.generic) parameters = {types_.fresh(), types_.fresh()};
      std::vector<Type> wanted;
      for (const Type& parameter : overload.parameters) wanted.push_back(instance(parameter, parameters));
      if (!types_.assignable(given, wanted)) continue;
      node.overloads.push_back(&overload);
      Type made = types_.known(instance(overload.result, parameters));
      if (!result) {
        result = std::move(made);
      } else if (result->kind != TypeKind::kDyn && !(*result == made)) {
        result = Type{};
      }
    }
    if (result) return *std::move(result);
    no_overload(node, node.name, given, node.member);
    return {.kind = TypeKind::kError};
  }

  void no_overload(const Node& node, std::string_view name, std::span<const Type> given, bool member) {
    std::string text;
    for (std::size_t i = member ? 1 : 0; i < given.size(); ++i) text += (text.empty() ? "" : ", ") + shown(given[i]);
    problem(node, fmt::format("found no matching overload for '{}' applied to '{}({})'", name,
                              member ? shown(given[0]) + "." : "", text));
  }

  std::vector<SyntaxError>& problems_;
  const Environment& environment_;
  Unification types_;
  std::vector<Local> locals_;
};

}  // namespace

void check(Node& root, std::vector<SyntaxError>& problems, const Environment& environment) {
  Checker(problems, environment).check(root);
}

}  // namespace spillway::cel
