#include "policy/cel/costs.h"

#include "policy/cel/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace spillway::cel {

namespace {

/// The rule by which a call is charged.
enum class Rule : std::uint8_t {
  kElements,      // everything in the first argument
  kFirst,         // the characters of the first argument
  kFirstTwice,    // a text is read and another one made
  kResultTwice,   // the resulting text is read and another one made
  kPattern,       // a text by a pattern
  kProduct,       // a text in a text
  kShorter,       // up to the end of the shorter one
  kBoth,          // both arguments are copied
  kSecondSize,    // every element of the second argument
  kCheck,         // a call of the authorizer
  kSelector,      // a selector is read
  kContainsIp,    // a range against an address
  kContainsCidr,  // a range against a range
  kFormat,        // a text by the pattern of a format
  kSet,           // every element of one list is compared with every element of the other
  kSetTwice,
  kOne,
};

struct NamedRule {
  std::string_view name;
  Rule rule;
};

/// Rules by the name of the function, independent of its arguments.
constexpr std::array kByName = std::to_array<NamedRule>({
    {"check", Rule::kCheck},
    {"cidr", Rule::kFirst},
    {"containsCIDR", Rule::kContainsCidr},
    {"containsIP", Rule::kContainsIp},
    {"fieldSelector", Rule::kSelector},
    {"find", Rule::kPattern},
    {"findAll", Rule::kPattern},
    {"indexOf", Rule::kElements},
    {"ip.isCanonical", Rule::kFirstTwice},
    {"isCIDR", Rule::kFirst},
    {"isIP", Rule::kFirst},
    {"isQuantity", Rule::kFirst},
    {"isSorted", Rule::kElements},
    {"join", Rule::kResultTwice},
    {"labelSelector", Rule::kSelector},
    {"lastIndexOf", Rule::kElements},
    {"lowerAscii", Rule::kFirst},
    {"max", Rule::kElements},
    {"min", Rule::kElements},
    {"quantity", Rule::kFirst},
    {"replace", Rule::kFirstTwice},
    {"sets.contains", Rule::kSet},
    {"sets.equivalent", Rule::kSetTwice},
    {"sets.intersects", Rule::kSet},
    {"split", Rule::kFirstTwice},
    {"substring", Rule::kFirst},
    {"sum", Rule::kElements},
    {"trim", Rule::kFirst},
    {"upperAscii", Rule::kFirst},
    {"url", Rule::kFirst},
    {"validate", Rule::kFormat},
});

bool compares(std::string_view name) {
  return name == "_<_" || name == "_<=_" || name == "_>_" || name == "_>=_";
}

/// Costs of overloads whose argument types are known at compile time.
Rule rule_of_overload(const Overload& overload) {
  const TypeKind first = overload.parameters.empty() ? TypeKind::kDyn : overload.parameters[0].kind;
  const bool text = first == TypeKind::kString;
  const bool bytes = first == TypeKind::kBytes;
  const std::string_view name = overload.name;
  if (name == "_==_" || name == "_!=_") return Rule::kShorter;
  if (compares(name)) return text || bytes ? Rule::kShorter : Rule::kOne;
  if (name == "_+_") return text || bytes ? Rule::kBoth : Rule::kOne;
  if (name == "@in") return overload.parameters[1].kind == TypeKind::kList ? Rule::kSecondSize : Rule::kOne;
  if (name == "startsWith" || name == "endsWith" || name == "strings.quote" || name == "format") return Rule::kFirst;
  if (name == "contains") return Rule::kProduct;
  if (name == "matches") return overload.member ? Rule::kPattern : Rule::kOne;
  if (name == "bytes") return text ? Rule::kFirst : Rule::kOne;
  if (name == "string") return bytes ? Rule::kFirst : Rule::kOne;
  if (name == "ip") return text ? Rule::kFirst : Rule::kOne;
  return Rule::kOne;
}

Rule rule_of(const Node& call) {
  const auto* named = std::ranges::lower_bound(kByName, std::string_view(call.name), {}, &NamedRule::name);
  if (named != kByName.end() && named->name == call.name) return named->rule;
  return call.overloads.size() == 1 ? rule_of_overload(*call.overloads[0]) : Rule::kOne;
}

std::uint64_t elements_cost(const Value& value) {
  if (value.is(Kind::kString)) return value.string().size() / 10;
  if (value.is(Kind::kBytes)) return value.as<Bytes>().bytes.size() / 10;
  std::uint64_t cost = 0;
  if (value.is(Kind::kList)) {
    const List& list = value.as<List>();
    for (std::size_t i = 0; i < list.size(); ++i) cost += elements_cost(list.at(i));
    return cost;
  }
  if (value.is(Kind::kMap)) {
    const Map& map = value.as<Map>();
    for (std::size_t i = 0; i < map.size(); ++i) cost += elements_cost(map.key_at(i)) + elements_cost(map.value_at(i));
    return cost;
  }
  return 1;
}

std::uint64_t by_pattern(std::uint64_t text, std::uint64_t pattern) {
  return scaled(text + 1, kTraversalFactor) * scaled(pattern, kPatternFactor);
}

std::uint64_t selector_cost(std::uint64_t size) {
  constexpr double kRequirementsPerCharacter = 0.5;
  return kListCost + scaled(size, kTraversalFactor) +
         scaled(scaled(size, kRequirementsPerCharacter), static_cast<double>(kListCost + kMessageCost));
}

}  // namespace

std::uint64_t scaled(std::uint64_t size, double factor) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(size) * factor));
}

std::uint64_t cost_size(const Value& value) {
  constexpr std::uint64_t kBitsPerByte = 8;
  if (value.is(Kind::kString)) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(value.string(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
  }
  if (value.is(Kind::kBytes)) return value.as<Bytes>().bytes.size();
  if (value.is(Kind::kList)) return value.as<List>().size();
  if (value.is(Kind::kMap)) return value.as<Map>().size();
  if (value.is(Kind::kIp)) return value.as<api::IpAddress>().v4 ? 4 : 16;
  if (!value.is(Kind::kCidr)) return 1;
  const auto& range = value.as<api::IpRange>();
  return (static_cast<std::uint64_t>(range.prefix_bits) + kBitsPerByte - 1) / kBitsPerByte;
}

std::uint64_t pattern_size(const NamedFormat& format) {
  struct Size {
    std::string_view name;
    std::uint64_t size;
  };

  static constexpr std::array kSizes = std::to_array<Size>({{"dns1123Label", 30},
                                                            {"dns1123Subdomain", 60},
                                                            {"dns1035Label", 30},
                                                            {"qualifiedName", 60},
                                                            {"dns1123LabelPrefix", 30},
                                                            {"dns1123SubdomainPrefix", 60},
                                                            {"dns1035LabelPrefix", 30},
                                                            {"labelValue", 40},
                                                            {"uri", 1'246},
                                                            {"uuid", 72},
                                                            {"byte", 84},
                                                            {"date", 72},
                                                            {"datetime", 72}});
  const auto* found = std::ranges::find(kSizes, format.name, &Size::name);
  return found == kSizes.end() ? 0 : found->size;
}

std::uint64_t call_cost(const Node& call, std::span<const Value> arguments, const Value* result) {
  const Rule rule = rule_of(call);
  const auto size = [&](std::size_t index) { return cost_size(arguments[index]); };
  const auto is_text = [&](std::size_t index) { return arguments[index].is(Kind::kString); };
  switch (rule) {
    case Rule::kElements:
      return elements_cost(arguments[0]);
    case Rule::kFirst:
      return scaled(size(0), kTraversalFactor);
    case Rule::kFirstTwice:
      return scaled(2 * size(0), kTraversalFactor);
    case Rule::kResultTwice:
      return scaled(2 * (result == nullptr ? 1 : cost_size(*result)), kTraversalFactor);
    case Rule::kPattern:
      return by_pattern(size(0), size(1));
    case Rule::kProduct:
      return scaled(size(0), kTraversalFactor) * scaled(size(1), kTraversalFactor);
    case Rule::kShorter:
      return scaled(std::min(size(0), size(1)), kTraversalFactor);
    case Rule::kBoth:
      return scaled(size(0) + size(1), kTraversalFactor);
    case Rule::kSecondSize:
      return size(1);
    case Rule::kCheck:
      return kAccessCheckCost;
    case Rule::kSelector:
      return selector_cost(size(1));
    case Rule::kContainsIp:
    case Rule::kContainsCidr: {
      std::uint64_t cost = scaled(2 * size(0), kTraversalFactor);
      if (rule == Rule::kContainsCidr) cost += scaled(size(0), kTraversalFactor) + 1;
      return cost + (is_text(1) ? scaled(size(1), kTraversalFactor) : 0);
    }
    case Rule::kFormat:
      return arguments[0].is(Kind::kFormat) ? by_pattern(size(1), pattern_size(arguments[0].as<NamedFormat>())) : 1;
    case Rule::kSet:
      return size(0) * size(1) + 1;
    case Rule::kSetTwice:
      return 2 * size(0) * size(1) + 1;
    case Rule::kOne:
      return 1;
  }
  return 1;
}

}  // namespace spillway::cel
