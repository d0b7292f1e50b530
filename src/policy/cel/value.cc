#include "policy/cel/value.h"

#include "policy/cel/url_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>

namespace spillway::cel {

namespace {

using api::Json;

/// An order of a whole number and one with a fraction, without loss.
template <typename Whole>
std::optional<int> compare_with(Whole whole, double other) {
  if (std::isnan(other)) return std::nullopt;
  constexpr auto kBeyond = std::is_signed_v<Whole> ? 9223372036854775808.0 : 18446744073709551616.0;
  if (other >= kBeyond) return -1;
  if (other < (std::is_signed_v<Whole> ? -kBeyond : 0.0)) return 1;
  const double floor = std::floor(other);
  const auto below = static_cast<Whole>(floor);
  if (whole != below) return whole < below ? -1 : 1;
  return other > floor ? -1 : 0;
}

template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : a == b ? 0 : 1;
}

std::optional<int> negated(std::optional<int> order) {
  return order ? std::optional(-*order) : std::nullopt;
}

std::optional<int> compare_numbers(const Value& a, const Value& b) {
  if (a.is(Kind::kDouble) && b.is(Kind::kDouble)) {
    const double x = a.as<double>();
    const double y = b.as<double>();
    return std::isnan(x) || std::isnan(y) ? std::nullopt : std::optional(order(x, y));
  }
  if (a.is(Kind::kDouble)) return negated(compare_numbers(b, a));
  if (a.is(Kind::kInt)) {
    const std::int64_t x = a.as<std::int64_t>();
    if (b.is(Kind::kDouble)) return compare_with(x, b.as<double>());
    if (b.is(Kind::kInt)) return order(x, b.as<std::int64_t>());
    return x < 0 ? -1 : order(static_cast<std::uint64_t>(x), b.as<std::uint64_t>());
  }
  const std::uint64_t x = a.as<std::uint64_t>();
  if (b.is(Kind::kDouble)) return compare_with(x, b.as<double>());
  if (b.is(Kind::kUint)) return order(x, b.as<std::uint64_t>());
  return negated(compare_numbers(b, a));
}

bool includes_all(const List& whole, const List& part, Budget& budget) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    bool found = false;
    for (std::size_t j = 0; j < whole.size() && !found; ++j) {
      found = whole.kind() == ListKind::kMap
                  ? same_element(whole, part.at(i), whole.at(j), budget) && equal(part.at(i), whole.at(j), budget)
                  : equal(part.at(i), whole.at(j), budget);
    }
    if (!found) return false;
  }
  return true;
}

bool equal_lists(const List& a, const List& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  if (a.kind() == ListKind::kSet) return includes_all(a, b, budget) && includes_all(b, a, budget);
  if (a.kind() == ListKind::kMap) return includes_all(a, b, budget);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(a.at(i), b.at(i), budget)) return false;
  }
  return true;
}

bool equal_maps(const Map& a, const Map& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Value key = a.key_at(i);
    if (!budget.charge(b.search_cost())) return false;
    const std::optional<Value> other = b.find(key);
    if (!other || !equal(*a.find(key), *other, budget)) return false;
  }
  return true;
}

bool equal_optionals(const Optional& a, const Optional& b, Budget& budget) {
  if (a.value == nullptr || b.value == nullptr) return a.value == b.value;
  return equal(*a.value, *b.value, budget);
}

/// Compares two values of the same kind, of types after kAccess.
bool equal_of_libraries(const Value& a, const Value& b, Budget& budget) {
  if (a.is(Kind::kOptional)) return equal_optionals(a.as<Optional>(), b.as<Optional>(), budget);
  if (a.is(Kind::kQuantity)) return *a.as<Amount>().quantity == *b.as<Amount>().quantity;
  if (a.is(Kind::kIp)) return a.as<api::IpAddress>() == b.as<api::IpAddress>();
  if (a.is(Kind::kFormat)) return a.as<NamedFormat>().name == b.as<NamedFormat>().name;
  if (a.is(Kind::kCidr)) {
    const auto& x = a.as<api::IpRange>();
    const auto& y = b.as<api::IpRange>();
    return x.first == y.first && x.prefix_bits == y.prefix_bits;
  }
  const UrlParts& x = *a.as<Url>().parts;
  const UrlParts& y = *b.as<Url>().parts;
  return budget.charge_bytes(std::min(x.text.size(), y.text.size())) && x.text == y.text;
}

}  // namespace

bool same_element(const List& list, const Value& a, const Value& b, Budget& budget) {
  if (list.kind() != ListKind::kMap) return equal(a, b, budget);
  if (!a.is(Kind::kMap) || !b.is(Kind::kMap)) return false;
  for (const std::string& key : *list.keys()) {
    const std::optional<Value> one = a.as<Map>().find(key);
    const std::optional<Value> other = b.as<Map>().find(key);
    if (one.has_value() != other.has_value() || (one && !equal(*one, *other, budget))) return false;
  }
  return true;
}

List::List(std::vector<Value> made) : made_(std::make_shared<const std::vector<Value>>(std::move(made))) {}

List::List(std::vector<Value> made, ListKind kind, std::shared_ptr<const std::vector<std::string>> keys)
    : kind_(kind), made_(std::make_shared<const std::vector<Value>>(std::move(made))), keys_(std::move(keys)) {}

std::size_t List::size() const {
  return seen_ != nullptr ? seen_->size() : made_->size();
}

Value List::at(std::size_t index) const {
  return seen_ != nullptr ? Value::of((*seen_)[index]) : (*made_)[index];
}

Map::Map(Entries made) : made_(std::make_shared<const Entries>(std::move(made))) {}

std::size_t Map::size() const {
  return seen_ != nullptr ? seen_->size() : made_->size();
}

Value Map::key_at(std::size_t index) const {
  if (seen_ == nullptr) return (*made_)[index].first;
  return Value(Text{.text = (seen_->begin() + static_cast<std::ptrdiff_t>(index))->key});
}

Value Map::value_at(std::size_t index) const {
  if (seen_ == nullptr) return (*made_)[index].second;
  return Value::of((seen_->begin() + static_cast<std::ptrdiff_t>(index))->value);
}

std::optional<Value> Map::find(std::string_view key) const {
  if (seen_ == nullptr) return find(Value(Text{.text = key}));
  const Json* found = seen_->find(key);
  return found == nullptr ? std::nullopt : std::optional(Value::of(*found));
}

std::optional<Value> Map::find(const Value& key) const {
  if (seen_ != nullptr) return key.is(Kind::kString) ? find(key.string()) : std::nullopt;
  const auto found = std::ranges::find_if(*made_, [&](const auto& entry) { return compare(entry.first, key) == 0; });
  return found == made_->end() ? std::nullopt : std::optional(found->second);
}

std::size_t Map::search_cost() const {
  return seen_ != nullptr ? 1 : made_->size() + 1;
}

Value Value::of(const Json& json) {
  switch (json.type()) {
    case Json::Type::kNull:
      return {};
    case Json::Type::kBool:
      return Value(*json.if_bool());
    case Json::Type::kInt:
      return Value(*json.if_int64());
    case Json::Type::kUint:
      return Value(*json.if_uint64());
    case Json::Type::kDouble:
      return Value(*json.if_double());
    case Json::Type::kString:
      return Value(Text{.text = *json.if_string()});
    case Json::Type::kArray:
      return Value(List(*json.if_array()));
    case Json::Type::kObject:
      return Value(Map(*json.if_object()));
  }
  return {};
}

Value Value::text(std::string made) {
  auto owner = std::make_shared<const std::string>(std::move(made));
  const std::string_view text = *owner;
  return Value(Text{.text = text, .made = std::move(owner)});
}

Value Value::bytes(std::string made) {
  auto owner = std::make_shared<const std::string>(std::move(made));
  const std::string_view bytes = *owner;
  return Value(Bytes{.bytes = bytes, .made = std::move(owner)});
}

Value Value::quantity(api::Quantity made) {
  return Value(Amount{.quantity = std::make_shared<const api::Quantity>(std::move(made))});
}

Value Value::some(Value value) {
  return Value(Optional{.value = std::make_shared<const Value>(std::move(value))});
}

std::string_view type_name(const Value& value) {
  static constexpr std::array<std::string_view, 19> kNames{"null_type",
                                                           "bool",
                                                           "int",
                                                           "uint",
                                                           "double",
                                                           "string",
                                                           "bytes",
                                                           "list",
                                                           "map",
                                                           "google.protobuf.Timestamp",
                                                           "google.protobuf.Duration",
                                                           "type",
                                                           "kubernetes.authorization.Authorizer",
                                                           "kubernetes.Quantity",
                                                           "kubernetes.URL",
                                                           "net.IP",
                                                           "net.CIDR",
                                                           "kubernetes.NamedFormat",
                                                           "optional_type"};
  return kNames[static_cast<std::size_t>(value.kind())];
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  if (!budget.charge(1)) return false;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kNull)) return true;
  if (a.is(Kind::kList)) return equal_lists(a.as<List>(), b.as<List>(), budget);
  if (a.is(Kind::kMap)) return equal_maps(a.as<Map>(), b.as<Map>(), budget);
  if (a.is(Kind::kType)) return a.as<TypeName>().name == b.as<TypeName>().name;
  if (a.kind() >= Kind::kQuantity) return equal_of_libraries(a, b, budget);
  if (a.is(Kind::kString) && !budget.charge_bytes(std::min(a.string().size(), b.string().size()))) return false;
  if (a.is(Kind::kBytes) && !budget.charge_bytes(std::min(a.as<Bytes>().bytes.size(), b.as<Bytes>().bytes.size()))) {
    return false;
  }
  return compare(a, b) == 0;
}

std::optional<int> compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.kind() != b.kind()) return std::nullopt;
  if (a.is(Kind::kBool)) return order(a.as<bool>(), b.as<bool>());
  if (a.is(Kind::kString)) return order(a.string(), b.string());
  if (a.is(Kind::kBytes)) return order(a.as<Bytes>().bytes, b.as<Bytes>().bytes);
  if (a.is(Kind::kTimestamp)) return order(a.as<Moment>(), b.as<Moment>());
  if (a.is(Kind::kDuration)) return order(a.as<Duration>(), b.as<Duration>());
  return std::nullopt;
}

}  // namespace spillway::cel
