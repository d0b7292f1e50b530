#include "policy/cel/evaluator.h"

#include <memory>
#include <optional>
#include <utility>

namespace spillway::cel {

namespace {

constexpr std::uint64_t kListUnits = 10;
constexpr std::uint64_t kMapUnits = 30;

Error no_such_key(std::string_view key) {
  constexpr std::size_t kShownMax = 128;
  return evaluation_error("no such key: " + std::string(key.substr(0, kShownMax)));
}

bool is_key(const Value& value) {
  return value.is(Kind::kBool) || value.is(Kind::kInt) || value.is(Kind::kUint) || value.is(Kind::kString);
}

Value access_of(AccessStage stage, AccessRequest request) {
  return Value(Access{.stage = stage, .request = std::make_shared<const AccessRequest>(std::move(request))});
}

}  // namespace

Result<Value> Evaluator::evaluate(const Node& node) {
  if (node.kind == NodeKind::kConstant) return node.constant;
  if (!budget_.charge(1)) return over_budget();
  switch (node.kind) {
    case NodeKind::kConstant:
      return node.constant;
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
    case NodeKind::kAnd:
      return connect(node, false);
    case NodeKind::kOr:
      return connect(node, true);
    case NodeKind::kTernary:
      return ternary(node);
    case NodeKind::kAll:
      return quantifier(node, false);
    case NodeKind::kExists:
      return quantifier(node, true);
    case NodeKind::kExistsOne:
      return exactly_one(node);
    case NodeKind::kMapMacro:
    case NodeKind::kFilter:
      return collect(node);
    case NodeKind::kOptSelect:
      return optional_select(node);
    case NodeKind::kOptEntry:
      return no_such_overload();  // entry() looks at it
    case NodeKind::kOptMap:
    case NodeKind::kOptFlatMap:
      return mapped_optional(node);
  }
  return no_such_overload();
}

Result<Value> Evaluator::identifier(const Node& node) const {
  switch (node.variable) {
    case Variable::kLocal:
      return locals_[node.slot];
    case Variable::kObject:
      return Value::of(activation_.object);
    case Variable::kOldObject:
      return Value::of(activation_.old_object);
    case Variable::kRequest:
      return Value::of(activation_.request);
    case Variable::kAuthorizer:
      return access_of(AccessStage::kAuthorizer, {});
    case Variable::kRequestResource:
      return access_of(AccessStage::kResource, activation_.access);
    case Variable::kSelf:
      return *activation_.self;
    case Variable::kOldSelf:
      if (activation_.old_self == nullptr) return evaluation_error("no such attribute(s): oldSelf");
      return *activation_.old_self;
    case Variable::kParams:
      return activation_.params == nullptr ? Value() : Value::of(*activation_.params);
    case Variable::kNamespaceObject:
      return activation_.namespace_object == nullptr ? Value() : Value::of(*activation_.namespace_object);
    case Variable::kVariables:
      return activation_.variables->value_of(node.slot, budget_);
  }
  return no_such_overload();
}

Result<std::optional<Value>> Evaluator::member(const Value& value, const std::string& name) {
  if (!value.is(Kind::kMap)) return std::optional<Value>();
  const Map& map = value.as<Map>();
  if (!budget_.charge(map.search_cost())) return over_budget();
  return map.find(name);
}

Result<Value> Evaluator::select(const Node& node) {
  SPILLWAY_TRY(operand, evaluate(node.children[0]));
  if (operand.is(Kind::kOptional)) return chosen(operand, node.name);
  SPILLWAY_TRY(found, member(operand, node.name));
  if (!found) return no_such_key(node.name);
  return *std::move(found);
}

Result<Value> Evaluator::presence(const Node& node) {
  SPILLWAY_TRY(operand, evaluate(node.children[0]));
  if (operand.is(Kind::kOptional)) {
    SPILLWAY_TRY(found, chosen(operand, node.name));
    return Value(found.as<Optional>().value != nullptr);
  }
  SPILLWAY_TRY(found, member(operand, node.name));
  return Value(found.has_value());
}

Result<Value> Evaluator::optional_select(const Node& node) {
  SPILLWAY_TRY(operand, evaluate(node.children[0]));
  return chosen(operand.is(Kind::kOptional) ? operand : Value::some(std::move(operand)), node.name);
}

/// The member of what may be absent: absent, too, if there is none.
Result<Value> Evaluator::chosen(const Value& optional, const std::string& name) {
  const std::shared_ptr<const Value>& value = optional.as<Optional>().value;
  if (value == nullptr) return Value::none();
  if (!value->is(Kind::kMap)) return no_such_key(name);
  SPILLWAY_TRY(found, member(*value, name));
  return found ? Value::some(*std::move(found)) : Value::none();
}

Result<Value> Evaluator::mapped_optional(const Node& node) {
  SPILLWAY_TRY(operand, evaluate(node.children[0]));
  if (!operand.is(Kind::kOptional)) return no_such_overload();
  const std::shared_ptr<const Value> value = operand.as<Optional>().value;
  if (value == nullptr) return Value::none();
  SPILLWAY_TRY(made, with(node, *value, node.children[1]));
  if (node.kind == NodeKind::kOptMap) return Value::some(std::move(made));
  if (!made.is(Kind::kOptional)) return no_such_overload();
  return made;
}

namespace {

/// or() and orValue() of a value that is present look at nothing else.
bool decides(const Node& node, const std::vector<Value>& arguments) {
  if (!node.member || arguments.size() != 1 || node.children.size() != 2) return false;
  if (node.name != "or" && node.name != "orValue") return false;
  return arguments[0].is(Kind::kOptional) && arguments[0].as<Optional>().value != nullptr;
}

}  // namespace

Result<Value> Evaluator::call(const Node& node) {
  std::vector<Value> arguments;
  arguments.reserve(node.children.size());
  for (const Node& child : node.children) {
    SPILLWAY_TRY(argument, evaluate(child));
    arguments.push_back(std::move(argument));
    if (!decides(node, arguments)) continue;
    const Optional& present = arguments[0].as<Optional>();
    return node.name == "or" ? arguments[0] : *present.value;
  }
  for (const Overload& overload : node.overloads) {
    bool fitting = true;
    for (std::size_t i = 0; i < arguments.size() && fitting; ++i) {
      fitting = fits(overload.parameters[i].kind, arguments[i]);
    }
    if (!fitting) continue;
    return overload.function({.arguments = arguments,
                              .budget = budget_,
                              .pattern = node.pattern ? &*node.pattern : nullptr,
                              .check = activation_.check});
  }
  return no_such_overload();
}

Result<Value> Evaluator::list(const Node& node) {
  if (!budget_.charge(kListUnits)) return over_budget();
  std::vector<Value> elements;
  elements.reserve(node.children.size());
  for (const Node& child : node.children) {
    SPILLWAY_TRY(element, entry(child));
    if (element) elements.push_back(*std::move(element));
  }
  return Value(List(std::move(elements)));
}

Result<std::optional<Value>> Evaluator::entry(const Node& node) {
  if (node.kind != NodeKind::kOptEntry) {
    SPILLWAY_TRY(value, evaluate(node));
    return std::optional(std::move(value));
  }
  SPILLWAY_TRY(value, evaluate(node.children[0]));
  if (!value.is(Kind::kOptional)) return no_such_overload();
  const Optional& found = value.as<Optional>();
  return found.value == nullptr ? std::optional<Value>() : std::optional(*found.value);
}

Result<Value> Evaluator::map(const Node& node) {
  if (!budget_.charge(kMapUnits)) return over_budget();
  Map::Entries entries;
  for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
    SPILLWAY_TRY(key, evaluate(node.children[i]));
    SPILLWAY_TRY(value, entry(node.children[i + 1]));
    if (!value) continue;
    if (!is_key(key)) return evaluation_error("unsupported key type");
    if (!budget_.charge(entries.size() + 1)) return over_budget();
    for (const auto& [other, unused] : entries) {
      if (compare(other, key) == 0) return evaluation_error("Failed with repeated key");
    }
    entries.emplace_back(std::move(key), *std::move(value));
  }
  return Value(Map(std::move(entries)));
}

/// && (false decides) and || (true decides): whoever decides does so whatever errors others are. Else the first error
/// is the outcome.
Result<Value> Evaluator::connect(const Node& node, bool deciding) {
  std::optional<Error> first;
  for (const Node& child : node.children) {
    Result<Value> value = evaluate(child);
    if (budget_.spent()) return over_budget();
    if (value && value->is(Kind::kBool)) {
      if (value->as<bool>() == deciding) return Value(deciding);
    } else if (!first) {
      first = value ? no_such_overload() : std::move(value).error();
    }
  }
  if (first) return *std::move(first);
  return Value(!deciding);
}

Result<Value> Evaluator::ternary(const Node& node) {
  SPILLWAY_TRY(condition, evaluate(node.children[0]));
  if (!condition.is(Kind::kBool)) return no_such_overload();
  return evaluate(node.children[condition.as<bool>() ? 1 : 2]);
}

/// The elements of a list, the keys of a map.
Result<std::vector<Value>> Evaluator::range(const Node& node) {
  SPILLWAY_TRY(value, evaluate(node));
  std::vector<Value> elements;
  if (value.is(Kind::kList)) {
    const List& list = value.as<List>();
    if (!budget_.charge(list.size())) return over_budget();
    for (std::size_t i = 0; i < list.size(); ++i) elements.push_back(list.at(i));
    return elements;
  }
  if (!value.is(Kind::kMap)) return no_such_overload();
  const Map& map = value.as<Map>();
  if (!budget_.charge(map.size())) return over_budget();
  for (std::size_t i = 0; i < map.size(); ++i) elements.push_back(map.key_at(i));
  return elements;
}

Result<Value> Evaluator::with(const Node& macro, const Value& element, const Node& body) {
  locals_.resize(macro.slot);
  locals_.push_back(element);
  Result<Value> value = evaluate(body);
  locals_.resize(macro.slot);
  return value;
}

Result<bool> Evaluator::condition(const Node& macro, const Value& element, const Node& body) {
  SPILLWAY_TRY(value, with(macro, element, body));
  if (!value.is(Kind::kBool)) return no_such_overload();
  return value.as<bool>();
}

/// all() as &&, exists() as || over the elements.
Result<Value> Evaluator::quantifier(const Node& node, bool deciding) {
  SPILLWAY_TRY(elements, range(node.children[0]));
  std::optional<Error> first;
  for (const Value& element : elements) {
    Result<bool> value = condition(node, element, node.children[1]);
    if (!budget_.charge(1)) return over_budget();
    if (value && *value == deciding) return Value(deciding);
    if (!value && !first) first = std::move(value).error();
  }
  if (first) return *std::move(first);
  return Value(!deciding);
}

Result<Value> Evaluator::exactly_one(const Node& node) {
  SPILLWAY_TRY(elements, range(node.children[0]));
  std::size_t found = 0;
  for (const Value& element : elements) {
    if (!budget_.charge(1)) return over_budget();
    SPILLWAY_TRY(value, condition(node, element, node.children[1]));
    if (value) ++found;
  }
  return Value(found == 1);
}

Result<Value> Evaluator::collect(const Node& node) {
  SPILLWAY_TRY(elements, range(node.children[0]));
  const bool maps = node.kind == NodeKind::kMapMacro;
  const bool filters = !maps || node.children.size() == 3;
  std::vector<Value> made;
  for (const Value& element : elements) {
    if (!budget_.charge(1)) return over_budget();
    if (filters) {
      SPILLWAY_TRY(wanted, condition(node, element, node.children[1]));
      if (!wanted) continue;
    }
    if (!maps) {
      made.push_back(element);
      continue;
    }
    SPILLWAY_TRY(value, with(node, element, node.children.back()));
    made.push_back(std::move(value));
  }
  return Value(List(std::move(made)));
}

}  // namespace spillway::cel
