#include "policy/cel/estimate.h"

#include "policy/cel/costs.h"
#include "policy/cel/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::cel {

namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
constexpr Estimate kAnySize{.min = 0, .max = kLargest};
constexpr Estimate kStep{.min = 1, .max = 1};

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return a > kLargest - b ? kLargest : a + b;
}

std::uint64_t scaled_size(std::uint64_t size, double factor) {
  constexpr double kTwoTo64 = 18446744073709551616.0;
  const double made = std::ceil(static_cast<double>(size) * factor);
  return made >= kTwoTo64 ? kLargest : static_cast<std::uint64_t>(made);
}

Estimate operator+(const Estimate& a, const Estimate& b) {
  return {.min = saturating_sum(a.min, b.min), .max = saturating_sum(a.max, b.max)};
}

Estimate operator*(const Estimate& a, const Estimate& b) {
  return {.min = saturating_product(a.min, b.min), .max = saturating_product(a.max, b.max)};
}

Estimate scaled(const Estimate& size, double factor) {
  return {.min = scaled_size(size.min, factor), .max = scaled_size(size.max, factor)};
}

Estimate either(const Estimate& a, const Estimate& b) {
  return {.min = std::min(a.min, b.min), .max = std::max(a.max, b.max)};
}

Estimate exactly(std::uint64_t size) {
  return {.min = size, .max = size};
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// Facts about an expression besides its cost: the path of its value, and its size if that was found.
struct Facts {
  std::vector<std::string> path;  // the variable, and the path from there; empty: no path
  std::optional<Estimate> size;
};

struct CallEstimate {
  Estimate cost;
  std::optional<Estimate> size;
};

class Estimator {
 public:
  explicit Estimator(const Sizes& self) : self_(self) {}

  Estimate cost(const Node& node) {
    switch (node.kind) {
      case NodeKind::kMissing:
        return {};
      case NodeKind::kConstant:
        return constant(node);
      case NodeKind::kIdentifier:
        return identifier(node);
      case NodeKind::kSelect:
        return select(node);
      case NodeKind::kPresence:
        return cost(node.children[0]);
      case NodeKind::kCall:
        return call(node);
      case NodeKind::kList:
        return sum_of(node) + exactly(kListCost);
      case NodeKind::kMap:
        return sum_of(node) + exactly(kMapCost);
      case NodeKind::kComprehension:
        return comprehension(node);
      case NodeKind::kOptSelect:
        return cost(node.children[0]) + kStep;
      case NodeKind::kOptEntry:
        return cost(node.children[0]);
      case NodeKind::kOptMap:
      case NodeKind::kOptFlatMap:
        return mapped_optional(node);
    }
    return {};
  }

 private:
  struct Loop {
    std::string_view name;
    std::vector<std::string> path;
  };

  Facts& facts(const Node& node) { return facts_[&node]; }

  std::vector<std::string> path_below(const Node& node, std::string_view step) {
    std::vector<std::string> path = facts(node).path;
    path.emplace_back(step);
    return path;
  }

  Estimate sum_of(const Node& node) {
    Estimate sum;
    for (const Node& child : node.children) sum = sum + cost(child);
    return sum;
  }

  /// The name of a type costs as much as a variable.
  Estimate constant(const Node& node) {
    if (!node.constant.is(Kind::kType)) return {};
    facts(node).path = {std::string(node.constant.as<TypeName>().name)};
    return kStep;
  }

  Estimate identifier(const Node& node) {
    const auto loop = std::ranges::find(loops_.rbegin(), loops_.rend(), node.name, &Loop::name);
    facts(node).path = loop == loops_.rend() ? std::vector<std::string>{node.name} : loop->path;
    return kStep;
  }

  Estimate select(const Node& node) {
    const Node& operand = node.children[0];
    const Estimate sum = cost(operand);
    const TypeKind kind = operand.type.kind;
    const bool counted = kind == TypeKind::kMap || kind == TypeKind::kObject || is_message(kind);
    facts(node).path = path_below(operand, node.name);
    return counted ? sum + kStep : sum;
  }

  /// The sizes that the schema gives for that path. nullopt: the path does not follow the schema.
  std::optional<Estimate> size_at(const std::vector<std::string>& path) const {
    if (path.empty()) return std::nullopt;
    const Sizes* at = &self_;
    for (std::size_t i = 1; i < path.size() && at != nullptr; ++i) {
      if (path[i] == "@items" || path[i] == "@values") {
        at = at->element.get();
      } else if (path[i] == "@keys") {
        at = at->key.get();
      } else {
        const auto found = at->fields.find(path[i]);
        at = found == at->fields.end() ? nullptr : found->second.get();
      }
    }
    if (at == nullptr) return std::nullopt;
    return Estimate{.min = 0, .max = at->elements_max};
  }

  /// The result of a loop has no path.
  std::vector<std::string> shown_path(const Node& node) {
    const std::vector<std::string>& path = facts(node).path;
    return !path.empty() && path.front() == kResultVariable ? std::vector<std::string>() : path;
  }

  /// The size that follows from the text of the expression itself.
  std::optional<Estimate> written_size(const Node& node) {
    if (facts(node).size) return facts(node).size;
    if (node.kind == NodeKind::kList) return exactly(node.children.size());
    if (node.kind == NodeKind::kMap) return exactly(node.children.size() / 2);
    if (node.kind != NodeKind::kConstant || node.constant.is(Kind::kType)) return std::nullopt;
    return exactly(cost_size(node.constant));
  }

  std::optional<Estimate> found_size(const Node& node) {
    if (std::optional<Estimate> size = written_size(node)) return size;
    return size_at(shown_path(node));
  }

  /// The size for functions of Kubernetes' libraries.
  Estimate library_size(const Node& node) { return found_size(node).value_or(kAnySize); }

  /// The size for functions of CEL itself.
  Estimate size(const Node& node) {
    if (const std::optional<Estimate> found = found_size(node)) return *found;
    static constexpr std::array kScalars{TypeKind::kBool,   TypeKind::kInt,       TypeKind::kUint,
                                         TypeKind::kDouble, TypeKind::kTimestamp, TypeKind::kDuration};
    return std::ranges::find(kScalars, node.type.kind) != kScalars.end() ? kStep : kAnySize;
  }

  Estimate comprehension(const Node& node) {
    const Node& range = node.children[0];
    Estimate sum = cost(range) + cost(node.children[1]);
    const bool list = range.type.kind == TypeKind::kList;
    const bool map = range.type.kind == TypeKind::kMap;
    std::vector<std::string> path;
    if (list || map) path = path_below(range, list ? "@items" : "@keys");
    loops_.push_back({.name = node.name, .path = std::move(path)});
    const Estimate round = cost(node.children[2]) + cost(node.children[3]);
    loops_.pop_back();
    sum = sum + cost(node.children[4]);
    const Estimate count = size(range);
    facts(node).size = count;
    return sum + count * round;
  }

  /// Estimates the macro as the code that upstream generates for it: hasValue() ? optional.of(value) : optional.none(),
  /// with a loop over nothing for the variable.
  Estimate mapped_optional(const Node& node) {
    const Estimate target = cost(node.children[0]);
    const Estimate body = cost(node.children[1]);
    const Estimate bound = exactly(kListCost) + target + kStep + body;
    const Estimate made = node.kind == NodeKind::kOptMap ? bound + kStep : bound;
    return target + kStep + either(made, kStep);
  }

  Estimate call(const Node& node) {
    const std::size_t first = node.member ? 1 : 0;
    std::vector<const Node*> arguments;
    std::vector<Estimate> costs;
    for (std::size_t i = first; i < node.children.size(); ++i) {
      arguments.push_back(&node.children[i]);
      costs.push_back(cost(node.children[i]));
    }
    if (node.name == "_&&_" || node.name == "_||_") return connected(costs);
    const Node* target = node.member ? &node.children[0] : nullptr;
    const Estimate before = target == nullptr ? Estimate{} : cost(*target);
    if (node.name == "_?_:_") return chosen(node, costs);
    Estimate sum;
    for (const Estimate& each : costs) sum = sum + each;
    Estimate made{.min = kLargest, .max = 0};
    std::optional<Estimate> result;
    for (const Overload* overload : node.overloads) {
      const CallEstimate one = function(node.name, *overload, target, arguments);
      made = either(made, one.cost + sum);
      if (one.size) result = result ? either(*result, *one.size) : one.size;
      if (node.name != "_[_]") continue;
      const bool list = overload->parameters[0].kind == TypeKind::kList;
      const bool map = overload->parameters[0].kind == TypeKind::kMap;
      if (list || map) facts(node).path = path_below(node.children[0], list ? "@items" : "@values");
    }
    if (node.overloads.empty()) return {};
    if (result) facts(node).size = result;
    return before + made;
  }

  static Estimate connected(const std::vector<Estimate>& costs) {
    Estimate all;
    for (const Estimate& each : costs) all = all + each;
    return {.min = costs.front().min, .max = all.max};
  }

  Estimate chosen(const Node& node, const std::vector<Estimate>& costs) {
    facts(node).size = either(size(node.children[1]), size(node.children[2]));
    return costs[0] + either(costs[1], costs[2]);
  }

  using Arguments = std::vector<const Node*>;

  CallEstimate function(std::string_view name, const Overload& overload, const Node* target,
                        const Arguments& arguments) {
    if (std::optional<CallEstimate> made = of_library(name, overload, target, arguments)) return *made;
    return of_language(name, overload, target, arguments);
  }

  CallEstimate of_language(std::string_view name, const Overload& overload, const Node* target,
                           const Arguments& arguments) {
    const TypeKind first = overload.parameters.empty() ? TypeKind::kDyn : overload.parameters[0].kind;
    const bool text = first == TypeKind::kString;
    const bool bytes = first == TypeKind::kBytes;
    if (name == "format") return {scaled(size(*target), kTraversalFactor), {}};
    if (is_one_of(name, {"startsWith", "endsWith"}) || (name == "bytes" && text) || (name == "string" && bytes) ||
        name == "strings.quote") {
      return {scaled(size(*arguments[0]), kTraversalFactor), {}};
    }
    if (name == "@in" && overload.parameters[1].kind == TypeKind::kList) return {size(*arguments[1]), {}};
    if (name == "matches" && target != nullptr) return {by_pattern(size(*target), size(*arguments[0])), {}};
    if (name == "contains") {
      return {scaled(size(*target), kTraversalFactor) * scaled(size(*arguments[0]), kTraversalFactor), {}};
    }
    if (name == "_+_" && (text || bytes || first == TypeKind::kList)) {
      const Estimate both = size(*arguments[0]) + size(*arguments[1]);
      return {first == TypeKind::kList ? kStep : scaled(both, kTraversalFactor), both};
    }
    const bool compares = is_one_of(name, {"_<_", "_<=_", "_>_", "_>=_"}) && (text || bytes);
    if (compares || name == "_==_" || name == "_!=_") {
      const std::uint64_t most = std::min(size(*arguments[0]).max, size(*arguments[1]).max);
      return {scaled({.min = most > 0 ? 1U : 0U, .max = most}, kTraversalFactor), {}};
    }
    return {kStep, {}};
  }

  static Estimate by_pattern(const Estimate& text, const Estimate& pattern) {
    return scaled(text + kStep, kTraversalFactor) * scaled(pattern, kPatternFactor);
  }

  /// The size of the elements of a list, or of the keys of a map.
  Estimate element_size(const Node& list) {
    const std::vector<std::string> path = shown_path(list);
    if (path.empty()) return kAnySize;
    std::vector<std::string> below = path;
    below.emplace_back("@items");
    return size_at(below).value_or(kAnySize);
  }

  std::optional<CallEstimate> of_library(std::string_view name, const Overload& overload, const Node* target,
                                         const Arguments& arguments) {
    if (name == "check") return CallEstimate{exactly(kAccessCheckCost), {}};
    if (is_one_of(name, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})) return of_elements(*target);
    if (name == "url") {
      const Estimate text = library_size(*arguments[0]);
      return CallEstimate{scaled(text, kTraversalFactor), text};
    }
    if (is_one_of(name, {"lowerAscii", "upperAscii", "substring", "trim"})) {
      const Estimate text = library_size(*target);
      return CallEstimate{scaled(text, kTraversalFactor), text};
    }
    if (name == "replace") return replaced(*target, arguments);
    if (name == "split") return of_split(*target, arguments);
    if (name == "join") return joined(*target, arguments);
    if (name == "find" || name == "findAll") {
      const Estimate text = library_size(*target);
      return CallEstimate{by_pattern(text, library_size(*arguments[0])), Estimate{.min = 0, .max = text.max}};
    }
    return of_addresses(name, overload, arguments);
  }

  std::optional<CallEstimate> of_addresses(std::string_view name, const Overload& overload,
                                           const Arguments& arguments) {
    const bool reads_text =
        is_one_of(name, {"cidr", "isIP", "isCIDR", "quantity", "isQuantity"}) || (name == "ip" && !arguments.empty());
    if (reads_text) return CallEstimate{scaled(library_size(*arguments[0]), kTraversalFactor), {}};
    if (name == "ip.isCanonical") return CallEstimate{scaled(library_size(*arguments[0]), 2 * kTraversalFactor), {}};
    if (name == "containsIP" || name == "containsCIDR") {
      constexpr Estimate kBytes{.min = 4, .max = 16};
      Estimate made = scaled(kBytes + kBytes, kTraversalFactor);
      if (name == "containsCIDR") made = made + scaled(kBytes, kTraversalFactor) + kStep;
      if (overload.parameters[1].kind == TypeKind::kString) {
        made = made + scaled(library_size(*arguments[0]), kTraversalFactor);
      }
      return CallEstimate{made, {}};
    }
    if (name == "validate") {
      constexpr double kLongestPattern = 128;
      return CallEstimate{
          scaled(scaled(library_size(*arguments[0]), kTraversalFactor), kLongestPattern * kPatternFactor), {}};
    }
    if (name.starts_with("sets.")) {
      const Estimate once = size(*arguments[0]) * size(*arguments[1]);
      return CallEstimate{(name == "sets.equivalent" ? scaled(once, 2) : once) + kStep, {}};
    }
    if (name == "_==_") return of_equality(*arguments[0], *arguments[1]);
    return std::nullopt;
  }

  std::optional<CallEstimate> of_equality(const Node& a, const Node& b) {
    if (!(a.type == b.type)) return std::nullopt;
    const TypeKind kind = a.type.kind;
    const bool access = kind >= TypeKind::kAuthorizer && kind <= TypeKind::kDecision;
    if (kind == TypeKind::kIp || kind == TypeKind::kCidr || kind == TypeKind::kQuantity || access) {
      return CallEstimate{kStep, {}};
    }
    if (kind == TypeKind::kFormat) {
      constexpr std::uint64_t kLongestName = 64;
      return CallEstimate{scaled({.min = 1, .max = kLongestName}, kTraversalFactor), {}};
    }
    if (kind != TypeKind::kUrl) return std::nullopt;
    const std::optional<Estimate> text = written_size(b);
    return CallEstimate{scaled({.min = 1, .max = text ? text->max : 1}, kTraversalFactor), {}};
  }

  CallEstimate of_elements(const Node& list) {
    if (list.type.of.empty()) return {scaled(library_size(list), kTraversalFactor), {}};
    Estimate each = kStep;
    const TypeKind kind = list.type.of[0].kind;
    if (kind == TypeKind::kString || kind == TypeKind::kBytes) {
      each = each + scaled(element_size(list), kTraversalFactor);
    }
    return {library_size(list) * each, {}};
  }

  CallEstimate of_split(const Node& text, const Arguments& arguments) {
    const Estimate whole = library_size(text);
    std::uint64_t most = whole.max;
    if (arguments.size() > 1 && arguments[1]->kind == NodeKind::kConstant && arguments[1]->constant.is(Kind::kInt)) {
      most = static_cast<std::uint64_t>(arguments[1]->constant.as<std::int64_t>());
    }
    return {scaled(whole, 2 * kTraversalFactor), Estimate{.min = 0, .max = most}};
  }

  CallEstimate joined(const Node& list, const Arguments& arguments) {
    const Estimate count = library_size(list);
    Estimate made = list.type.of.empty() ? Estimate{} : count * element_size(list);
    if (!arguments.empty()) {
      const auto between = [](std::uint64_t elements) { return elements > 0 ? elements - 1 : 0; };
      made = made + library_size(*arguments[0]) * Estimate{.min = between(count.min), .max = between(count.max)};
    }
    return {scaled(made, kTraversalFactor), made};
  }

  CallEstimate replaced(const Node& text, const Arguments& arguments) {
    const Estimate whole = library_size(text);
    const Estimate part = library_size(*arguments[0]);
    const Estimate by = library_size(*arguments[1]);
    const auto parts = [](std::uint64_t size, std::uint64_t length) {
      return static_cast<std::uint64_t>(std::ceil(static_cast<double>(size) / static_cast<double>(length)));
    };
    Estimate count;
    Estimate kept;
    if (part.min == 0) {
      count.max = whole.max < kLargest ? whole.max + 1 : whole.max;
      kept.max = whole.max;
    } else if (by.max <= part.min) {
      kept.max = whole.max;
    } else {
      count.max = parts(whole.max, part.min);
    }
    if (part.max == 0) {
      count.min = whole.min < kLargest ? whole.min + 1 : whole.min;
      kept.min = whole.min;
    } else if (part.max <= by.min) {
      kept.min = whole.min;
    } else {
      count.min = parts(whole.min, part.max);
    }
    return {scaled(whole, 2 * kTraversalFactor), count * by + kept};
  }

  const Sizes& self_;
  std::map<const Node*, Facts> facts_;
  std::vector<Loop> loops_;
};

}  // namespace

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kLargest / b ? kLargest : a * b;
}

Estimate estimate_cost(const Node& root, const Sizes& self) {
  return Estimator(self).cost(root);
}

}  // namespace spillway::cel
