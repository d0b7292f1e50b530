#include "policy/cel/evaluator.h"

#include "policy/cel/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::cel {

namespace {

std::string shown_key(const Value& key) {
  constexpr std::size_t kShownMax = 128;
  if (key.is(Kind::kString)) return std::string(key.string().substr(0, kShownMax));
  if (key.is(Kind::kInt)) return fmt::format("{}", key.as<std::int64_t>());
  if (key.is(Kind::kUint)) return fmt::format("{}", key.as<std::uint64_t>());
  if (key.is(Kind::kDouble)) return fmt::format("{}", key.as<double>());
  if (key.is(Kind::kBool)) return key.as<bool>() ? "true" : "false";
  return std::string(type_name(key));
}

Error no_such_key(const Value& key) {
  return evaluation_error("no such key: " + shown_key(key));
}

bool is_key(const Value& value) {
  return value.is(Kind::kBool) || value.is_number() || value.is(Kind::kString) || value.is(Kind::kNull);
}

Value access_of(AccessStage stage, AccessRequest request) {
  return Value(Access{.stage = stage, .request = std::make_shared<const AccessRequest>(std::move(request))});
}

/// The name of a type in messages about values that cannot be iterated: "types.String".
std::string_view implementation_name(const Value& value) {
  static constexpr std::array<std::string_view, 12> kNames{
      "types.Null",  "types.Bool", "types.Int", "types.Uint",      "types.Double",   "types.String",
      "types.Bytes", "types.List", "types.Map", "types.Timestamp", "types.Duration", "*types.Type"};
  const auto kind = static_cast<std::size_t>(value.kind());
  if (value.is(Kind::kOptional)) return "*types.Optional";
  return kind < kNames.size() ? kNames[kind] : type_name(value);
}

/// The list index that a key means.
Result<std::int64_t> place_of(const Value& key) {
  if (key.is(Kind::kInt)) return key.as<std::int64_t>();
  if (key.is(Kind::kUint)) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(key.as<std::uint64_t>(), kMost));
  }
  if (!key.is(Kind::kDouble)) {
    return evaluation_error(fmt::format("unsupported index type '{}' in list", type_name(key)));
  }
  constexpr double kLimit = 9223372036854775808.0;
  const double number = key.as<double>();
  if (number >= -kLimit && number < kLimit) {
    const auto whole = static_cast<std::int64_t>(number);
    if (static_cast<double>(whole) == number) return whole;
  }
  return evaluation_error(fmt::format("unsupported index value {} in list", number));
}

/// Also checks the type of the first element of a list or a map.
bool fits_deeply(const Type& type, const Value& value) {
  if (!fits(type.kind, value)) return false;
  if (type.kind == TypeKind::kList) {
    const List& list = value.as<List>();
    return type.of.empty() || list.size() == 0 || fits_deeply(type.of[0], list.at(0));
  }
  if (type.kind == TypeKind::kMap && value.as<Map>().size() > 0 && type.of.size() == 2) {
    const Map& map = value.as<Map>();
    return fits_deeply(type.of[0], map.key_at(0)) && fits_deeply(type.of[1], map.value_at(0));
  }
  if (type.kind == TypeKind::kOptional && !type.of.empty()) {
    const Optional& optional = value.as<Optional>();
    return optional.value == nullptr || fits_deeply(type.of[0], *optional.value);
  }
  return true;
}

/// Operations that are those of the first operand's type.
bool has_operation(std::string_view name, const Value& value) {
  const Kind kind = value.kind();
  const bool number = value.is_number();
  const bool time = kind == Kind::kTimestamp || kind == Kind::kDuration;
  const bool text = kind == Kind::kString || kind == Kind::kBytes;
  if (name == "_+_") return number || time || text || kind == Kind::kList;
  if (name == "_-_") return number || time;
  if (name == "_*_" || name == "_/_") return number;
  if (name == "_%_") return kind == Kind::kInt || kind == Kind::kUint;
  if (name == "-_") return kind == Kind::kInt || kind == Kind::kDouble || kind == Kind::kBool;
  if (name == "_<_" || name == "_<=_" || name == "_>_" || name == "_>=_") {
    return number || time || text || kind == Kind::kBool;
  }
  if (name == "size") return text || kind == Kind::kList || kind == Kind::kMap;
  return true;
}

/// True for operators, whose errors name no types.
bool is_operation(std::string_view name) {
  static constexpr std::array kNames = std::to_array<std::string_view>({"!_",
                                                                        "-_",
                                                                        "@in",
                                                                        "_!=_",
                                                                        "_%_",
                                                                        "_*_",
                                                                        "_+_",
                                                                        "_-_",
                                                                        "_/_",
                                                                        "_<=_",
                                                                        "_<_",
                                                                        "_==_",
                                                                        "_>=_",
                                                                        "_>_",
                                                                        "contains",
                                                                        "endsWith",
                                                                        "getDate",
                                                                        "getDayOfMonth",
                                                                        "getDayOfWeek",
                                                                        "getDayOfYear",
                                                                        "getFullYear",
                                                                        "getHours",
                                                                        "getMilliseconds",
                                                                        "getMinutes",
                                                                        "getMonth",
                                                                        "getSeconds",
                                                                        "matches",
                                                                        "size",
                                                                        "startsWith"});
  return std::ranges::find(kNames, name) != kNames.end();
}

/// The error that no overload of this function accepts these arguments.
Error no_overload(const Node& node, std::span<const Value> arguments) {
  if (is_operation(node.name)) {
    if (!has_operation(node.name, arguments[0])) return evaluation_error("no such overload: " + node.name);
    return no_such_overload();
  }
  std::string types;
  for (const Value& argument : arguments) {
    if (!types.empty()) types += ", ";
    types += type_name(argument);
  }
  return evaluation_error(fmt::format("no such overload: {}({})", node.name, types));
}

bool is_alternative(const Node& node) {
  return node.member && node.children.size() == 2 && (node.name == "or" || node.name == "orValue");
}

}  // namespace

bool is_index(const Node& node) {
  return node.kind == NodeKind::kCall && (node.name == "_[_]" || node.name == "_[?_]");
}

bool is_conditional(const Node& node) {
  return node.kind == NodeKind::kCall && node.name == "_?_:_";
}

bool is_attribute(const Node& node) {
  if (node.folded) return false;
  return node.kind == NodeKind::kIdentifier || node.kind == NodeKind::kSelect || node.kind == NodeKind::kOptSelect ||
         is_index(node) || is_conditional(node);
}

const Node& operand_of(const Node& node) {
  return node.children[0];
}

Result<Value> Evaluator::evaluate(const Node& node) {
  if (node.folded) return node.constant;
  if (node.kind == NodeKind::kConstant) return node.constant;
  if (!budget_.step()) return over_budget();
  switch (node.kind) {
    case NodeKind::kConstant:
      return node.constant;
    case NodeKind::kMissing:
    case NodeKind::kOptEntry:  // entry() evaluates it
      return no_such_overload();
    case NodeKind::kIdentifier:
    case NodeKind::kSelect:
    case NodeKind::kOptSelect:
      return attribute(node);
    case NodeKind::kPresence:
      return presence(node);
    case NodeKind::kCall:
      if (is_attribute(node)) return attribute(node);
      if (node.name == "_&&_") return connect(node, false);
      if (node.name == "_||_") return connect(node, true);
      if (is_alternative(node)) return alternative(node);
      return call(node);
    case NodeKind::kList:
      return list(node);
    case NodeKind::kMap:
      return map(node);
    case NodeKind::kComprehension:
      return comprehension(node);
    case NodeKind::kOptMap:
    case NodeKind::kOptFlatMap:
      return mapped_optional(node);
  }
  return no_such_overload();
}

Result<Value> Evaluator::identifier(const Node& node) {
  switch (node.variable) {
    case Variable::kLocal: {
      Local& local = locals_[node.slot];
      if (!budget_.pay(std::exchange(local.cost, 0))) return over_budget();
      return local.value;
    }
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
      if (!budget_.pay(1)) return over_budget();
      return activation_.variables->value_of(node.slot, budget_);
    case Variable::kGiven:
      return activation_.given[node.slot];
  }
  return no_such_overload();
}

namespace {

/// A choice between two costs nothing itself.
bool begins_with_conditional(const Node& node) {
  const Node* at = &node;
  while (is_attribute(*at) && at->kind != NodeKind::kIdentifier && !is_conditional(*at)) at = &operand_of(*at);
  return is_conditional(*at) && is_attribute(*at);
}

}  // namespace

Result<Value> Evaluator::attribute(const Node& node) {
  Result<Chain> found = resolve(node);
  if (budget_.spent()) return over_budget();
  if (!begins_with_conditional(node) && !budget_.pay(1)) return over_budget();
  if (!found) return std::move(found).error();
  if (!found->may_be_absent) return std::move(found->value);
  return found->absent ? Value::none() : Value::some(std::move(found->value));
}

Result<Evaluator::Chain> Evaluator::operand(const Node& node) {
  if (is_attribute(node)) {
    // A selection from another selection continues that chain.
    return resolve(node);
  }
  SPILLWAY_TRY(value, evaluate(node));
  return Chain{.value = std::move(value)};
}

Result<Evaluator::Chain> Evaluator::branch(const Node& node) {
  return operand(node);
}

Result<Evaluator::Chain> Evaluator::resolve(const Node& node) {
  if (!budget_.step()) return over_budget();
  if (node.kind == NodeKind::kIdentifier) {
    SPILLWAY_TRY(value, identifier(node));
    return Chain{.value = std::move(value)};
  }
  if (is_conditional(node)) {
    SPILLWAY_TRY(holds, condition(node.children[0]));
    return branch(node.children[holds ? 1 : 2]);
  }
  SPILLWAY_TRY(chain, operand(operand_of(node)));
  if (node.kind == NodeKind::kSelect || node.kind == NodeKind::kOptSelect) {
    Result<Chain> made = qualify(std::move(chain), Value(Text{.text = node.name}), node.kind == NodeKind::kOptSelect);
    const bool renamed = !made && !node.second.empty() && made.error().message == "no such key: " + node.name;
    return renamed ? evaluation_error("no such key: " + node.second) : std::move(made);
  }
  const Node& index = node.children[1];
  if (chain.absent) return chain;
  Result<Value> key = key_of(index);
  if (budget_.spent()) return over_budget();
  if (!key) {
    if (!budget_.pay(1)) return over_budget();
    return std::move(key).error();
  }
  return qualify(std::move(chain), *key, node.name == "_[?_]");
}

Result<Value> Evaluator::key_of(const Node& index) {
  if (!is_attribute(index)) return evaluate(index);
  SPILLWAY_TRY(chain, resolve(index));
  if (!chain.may_be_absent) return std::move(chain.value);
  return chain.absent ? Value::none() : Value::some(std::move(chain.value));
}

/// Looks up a member or element. Optional lookups that succeed cost nothing.
Result<Evaluator::Chain> Evaluator::qualify(Chain chain, const Value& key, bool optional) {
  if (chain.value.is(Kind::kOptional) && !chain.absent) {
    const std::shared_ptr<const Value> inside = chain.value.as<Optional>().value;
    chain = {.value = inside == nullptr ? Value() : *inside, .may_be_absent = true, .absent = inside == nullptr};
  }
  chain.may_be_absent = chain.may_be_absent || optional;
  if (chain.absent) return chain;
  std::optional<Value> found;
  std::optional<Error> why;
  if (chain.value.is(Kind::kMap)) {
    const Map& map = chain.value.as<Map>();
    if (!budget_.step() || !budget_.charge(map.search_cost() - 1)) return over_budget();
    found = map.find(key);
    if (!found) why = no_such_key(key);
  } else if (chain.value.is(Kind::kList)) {
    const List& list = chain.value.as<List>();
    const Result<std::int64_t> place = place_of(key);
    if (!place) {
      if (!chain.may_be_absent && !budget_.pay(1)) return over_budget();
      return place.error();
    }
    if (*place >= 0 && static_cast<std::uint64_t>(*place) < list.size()) {
      found = list.at(static_cast<std::size_t>(*place));
    } else {
      why = evaluation_error(fmt::format("index out of bounds: {}", *place));
    }
  } else {
    why = no_such_key(key);
  }
  if ((found || !chain.may_be_absent) && !budget_.pay(1)) return over_budget();
  if (found) {
    chain.value = *std::move(found);
    return chain;
  }
  if (!chain.may_be_absent) return *std::move(why);
  return Chain{.may_be_absent = true, .absent = true};
}

Result<Value> Evaluator::presence(const Node& node) {
  if (node.variable == Variable::kVariables) {
    SPILLWAY_TRY_VOID(evaluate(node.children[0]));
    return Value(true);
  }
  SPILLWAY_TRY(chain, operand(operand_of(node)));
  if (chain.value.is(Kind::kOptional) && !chain.absent) {
    const std::shared_ptr<const Value> inside = chain.value.as<Optional>().value;
    chain = {.value = inside == nullptr ? Value() : *inside, .may_be_absent = true, .absent = inside == nullptr};
  }
  if (chain.absent) return Value(false);
  bool found = false;
  if (chain.value.is(Kind::kMap)) {
    const Map& map = chain.value.as<Map>();
    if (!budget_.step() || !budget_.charge(map.search_cost() - 1)) return over_budget();
    found = map.find(node.name).has_value();
  }
  if ((found || !chain.may_be_absent) && !budget_.pay(1)) return over_budget();
  if (chain.value.is(Kind::kList)) return evaluation_error("unsupported index type 'string' in list");
  return Value(found);
}

/// or() and orValue() of a present value evaluate nothing else.
Result<Value> Evaluator::alternative(const Node& node) {
  SPILLWAY_TRY(first, evaluate(node.children[0]));
  if (!first.is(Kind::kOptional)) return no_overload(node, std::span(&first, 1));
  const Optional& optional = first.as<Optional>();
  if (optional.value == nullptr) return evaluate(node.children[1]);
  return node.name == "or" ? first : *optional.value;
}

Result<Value> Evaluator::mapped_optional(const Node& node) {
  const std::uint64_t before = budget_.used();
  Result<Value> target = evaluate(node.children[0]);
  const std::uint64_t cost = budget_.used() - before;
  if (!budget_.pay(1)) return over_budget();
  if (!target) return target;
  if (!target->is(Kind::kOptional)) {
    return evaluation_error(fmt::format("no such overload: hasValue({})", type_name(*target)));
  }
  const std::shared_ptr<const Value> inside = target->as<Optional>().value;
  if (inside == nullptr) {
    if (!budget_.pay(1)) return over_budget();
    return Value::none();
  }
  // The expression of the variable is evaluated again at its first use.
  locals_.resize(node.slot);
  locals_.push_back({.value = *inside, .cost = cost + 1});
  Result<Value> made = evaluate(node.children[1]);
  locals_.resize(node.slot);
  if (budget_.spent()) return over_budget();
  if (node.kind == NodeKind::kOptFlatMap) return made;
  if (!budget_.pay(1)) return over_budget();
  return made ? Result<Value>(Value::some(*std::move(made))) : made;
}

/// Both operands are evaluated even if the first one fails; of further arguments, and of a constant pattern, those
/// behind an error are not.
Result<Value> Evaluator::call(const Node& node) {
  std::vector<Value> arguments;
  arguments.reserve(node.children.size());
  std::optional<Error> failed;
  for (const Node& child : node.children) {
    Result<Value> argument = evaluate(child);
    if (budget_.spent()) return over_budget();
    if (argument) {
      arguments.push_back(*std::move(argument));
      continue;
    }
    if (node.children.size() > 2 || node.pattern) return argument;
    if (!failed) failed = std::move(argument).error();
    arguments.emplace_back();
  }
  if (failed) {
    if (!node.free && !budget_.pay(call_cost(node, arguments, nullptr))) return over_budget();
    return *std::move(failed);
  }
  Result<Value> made = invoke(node, arguments);
  if (budget_.spent()) return over_budget();
  if (!node.free && !budget_.pay(call_cost(node, arguments, made ? &*made : nullptr))) return over_budget();
  return made;
}

Result<Value> Evaluator::invoke(const Node& node, const std::vector<Value>& arguments) {
  for (const Overload* overload : node.overloads) {
    const bool fitting =
        overload->function != nullptr && std::ranges::equal(overload->parameters, arguments, fits_deeply);
    if (!fitting) continue;
    return overload->function({.arguments = arguments,
                               .budget = budget_,
                               .pattern = node.pattern ? &*node.pattern : nullptr,
                               .check = activation_.check});
  }
  return no_overload(node, arguments);
}

Result<Value> Evaluator::list(const Node& node) {
  std::vector<Value> elements;
  elements.reserve(node.children.size());
  for (const Node& child : node.children) {
    Result<std::optional<Value>> element = entry(child);
    if (budget_.spent()) return over_budget();
    if (!element) {
      if (!budget_.pay(kListCost)) return over_budget();
      return std::move(element).error();
    }
    if (*element) elements.push_back(**std::move(element));
  }
  if (!budget_.pay(kListCost)) return over_budget();
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

namespace {

/// The last of two equal keys counts. False: the budget is spent.
bool put(Map::Entries& entries, Value key, Value value, Budget& budget) {
  if (!budget.charge(entries.size() + 1)) return false;
  for (auto& [other, old] : entries) {
    if (other.kind() != key.kind() || compare(other, key) != 0) continue;
    old = std::move(value);
    return true;
  }
  entries.emplace_back(std::move(key), std::move(value));
  return true;
}

}  // namespace

Result<Value> Evaluator::map(const Node& node) {
  Map::Entries entries;
  std::optional<Error> failed;
  for (std::size_t i = 0; i + 1 < node.children.size() && !failed; i += 2) {
    Result<Value> key = evaluate(node.children[i]);
    if (!key) {
      failed = std::move(key).error();
      break;
    }
    Result<std::optional<Value>> value = entry(node.children[i + 1]);
    if (!value) {
      failed = std::move(value).error();
    } else if (!is_key(*key)) {
      failed = evaluation_error("unsupported key type");
    } else if (*value && !put(entries, *std::move(key), **std::move(value), budget_)) {
      return over_budget();
    }
  }
  if (budget_.spent() || !budget_.pay(kMapCost)) return over_budget();
  if (failed) return *std::move(failed);
  return Value(Map(std::move(entries)));
}

/// && (false decides) and || (true decides), whatever errors others are. Else the first error is the outcome.
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

Result<bool> Evaluator::condition(const Node& node) {
  SPILLWAY_TRY(value, evaluate(node));
  if (!value.is(Kind::kBool)) return no_such_overload();
  return value.as<bool>();
}

namespace {

std::size_t size_of(const Value& range) {
  return range.is(Kind::kList) ? range.as<List>().size() : range.as<Map>().size();
}

}  // namespace

Result<Value> Evaluator::comprehension(const Node& node) {
  SPILLWAY_TRY(range, evaluate(node.children[0]));
  if (!range.is(Kind::kList) && !range.is(Kind::kMap)) {
    return evaluation_error(node.second.empty()
                                ? fmt::format("got '{}', expected iterable type", implementation_name(range))
                                : fmt::format("unsupported comprehension range type: {}", implementation_name(range)));
  }
  locals_.resize(node.slot);
  Result<Value> made = loop(node, range);
  locals_.resize(node.slot);
  if (budget_.spent()) return over_budget();
  return made;
}

Result<Value> Evaluator::loop(const Node& node, const Value& range) {
  switch (node.macro) {
    case MacroKind::kAll:
      return quantifier(node, range, false);
    case MacroKind::kExists:
      return quantifier(node, range, true);
    case MacroKind::kExistsOne:
      return exactly_one(node, range);
    case MacroKind::kList:
      return collect(node, range);
    case MacroKind::kMap:
      return insert(node, range);
    case MacroKind::kNone:
      break;
  }
  return no_such_overload();
}

/// The variables of a round: an element of a list, or a key of a map; of two variables its place, or the key, first.
void Evaluator::declare(const Node& node, const Value& range, std::size_t index) {
  locals_.resize(node.slot + 1);
  const bool two = !node.second.empty();
  if (range.is(Kind::kList)) {
    if (two) locals_.push_back({.value = Value(static_cast<std::int64_t>(index))});
    locals_.push_back({.value = range.as<List>().at(index)});
    return;
  }
  locals_.push_back({.value = range.as<Map>().key_at(index)});
  if (two) locals_.push_back({.value = range.as<Map>().value_at(index)});
}

/// all() as &&, exists() as || over the elements. Each round costs as in upstream's expansion: the condition of the
/// loop, and the result so far.
Result<Value> Evaluator::quantifier(const Node& node, const Value& range, bool deciding) {
  const std::uint64_t round_cost = deciding ? 3 : 2;
  std::optional<Error> first;
  bool decided = false;
  for (std::size_t i = 0; i < size_of(range); ++i) {
    if (!budget_.step() || !budget_.pay_steps(round_cost)) return over_budget();
    if (decided) break;
    if (!budget_.pay(1)) return over_budget();
    declare(node, range, i);
    Result<bool> value = condition(node.children[3].children[1]);
    if (budget_.spent()) return over_budget();
    decided = value && *value == deciding;
    if (!value && !first) first = std::move(value).error();
  }
  if (!budget_.pay(1)) return over_budget();
  if (decided) return Value(deciding);
  if (first) return *std::move(first);
  return Value(!deciding);
}

Result<Value> Evaluator::exactly_one(const Node& node, const Value& range) {
  std::size_t found = 0;
  std::optional<Error> failed;
  for (std::size_t i = 0; i < size_of(range); ++i) {
    if (!budget_.step()) return over_budget();
    declare(node, range, i);
    Result<bool> value = condition(node.children[3].children[0]);
    if (budget_.spent()) return over_budget();
    if (!value) {
      failed = std::move(value).error();
    } else if (*value) {
      ++found;
      if (!budget_.pay_steps(2)) return over_budget();
    }
  }
  if (!budget_.pay_steps(2)) return over_budget();
  if (failed) return *std::move(failed);
  return Value(found == 1);
}

/// map() and filter(): adds an element to the resulting list.
Result<Value> Evaluator::collect(const Node& node, const Value& range) {
  const bool filters = is_conditional(node.children[3]);
  const Node& sum = filters ? node.children[3].children[1] : node.children[3];
  const Node& added = sum.children[1];
  std::vector<Value> made;
  std::optional<Error> failed;
  for (std::size_t i = 0; i < size_of(range); ++i) {
    if (!budget_.step()) return over_budget();
    declare(node, range, i);
    if (filters) {
      Result<bool> wanted = condition(node.children[3].children[0]);
      if (budget_.spent()) return over_budget();
      if (!wanted) failed = std::move(wanted).error();
      if (!wanted || !*wanted) continue;
    }
    if (!budget_.pay(1)) return over_budget();
    Result<Value> value = added.folded ? Result<Value>(added.constant.as<List>().at(0)) : evaluate(added.children[0]);
    if (budget_.spent()) return over_budget();
    if (!budget_.pay((added.folded ? 0 : kListCost) + 1)) return over_budget();
    if (!value && !failed) failed = std::move(value).error();
    if (value && !failed) made.push_back(*std::move(value));
  }
  if (!budget_.pay(1)) return over_budget();
  if (failed) return *std::move(failed);
  return Value(List(std::move(made)));
}

/// transformMap() and similar macros: adds an entry; a key may occur once.
Result<Value> Evaluator::insert(const Node& node, const Value& range) {
  const bool filters = is_conditional(node.children[3]);
  const Node& added = filters ? node.children[3].children[1] : node.children[3];
  Map::Entries entries;
  std::optional<Error> failed;
  const auto add = [&](const Value& key, Value value) {
    const bool known = std::ranges::any_of(
        entries, [&](const auto& entry) { return entry.first.kind() == key.kind() && compare(entry.first, key) == 0; });
    if (known) {
      failed = evaluation_error(fmt::format("insert failed: key {} already exists", shown_key(key)));
    } else {
      entries.emplace_back(key, std::move(value));
    }
  };
  for (std::size_t i = 0; i < size_of(range); ++i) {
    if (!budget_.charge(entries.size() + 1)) return over_budget();
    declare(node, range, i);
    if (filters) {
      Result<bool> wanted = condition(node.children[3].children[0]);
      if (budget_.spent()) return over_budget();
      if (!wanted) failed = std::move(wanted).error();
      if (!wanted || !*wanted) continue;
    }
    if (!budget_.pay(1)) return over_budget();
    if (failed) continue;
    Result<Value> first = evaluate(added.children[1]);
    Result<Value> second = !first || added.children.size() < 3 ? Result<Value>(Value()) : evaluate(added.children[2]);
    if (budget_.spent() || !budget_.pay(1)) return over_budget();
    if (!first || !second) {
      failed = first ? std::move(second).error() : std::move(first).error();
    } else if (added.children.size() == 3) {
      add(*first, *std::move(second));
    } else if (!first->is(Kind::kMap)) {
      failed = no_such_overload();
    } else {
      const Map& map = first->as<Map>();
      if (!budget_.charge(map.size() * (entries.size() + 1))) return over_budget();
      for (std::size_t j = 0; j < map.size() && !failed; ++j) add(map.key_at(j), map.value_at(j));
    }
  }
  if (!budget_.pay(1)) return over_budget();
  if (failed) return *std::move(failed);
  return Value(Map(std::move(entries)));
}

}  // namespace spillway::cel
