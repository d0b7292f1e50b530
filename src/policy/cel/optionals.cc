// Values that may be absent: optional.of, optional.none, hasValue, value, or, orValue, and members and elements that
// may be absent ([?i]; .? is a node of its own).
#include "policy/cel/functions.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

namespace spillway::cel {

namespace {

const Value* value_in(const Value& optional) {
  return optional.as<Optional>().value.get();
}

Result<Value> of(const Call& call) {
  return Value::some(call[0]);
}

Result<Value> none(const Call& /*call*/) {
  return Value::none();
}

bool is_zero(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return !value.as<bool>();
    case Kind::kInt:
      return value.as<std::int64_t>() == 0;
    case Kind::kUint:
      return value.as<std::uint64_t>() == 0;
    case Kind::kDouble:
      return value.as<double>() == 0;
    case Kind::kString:
      return value.string().empty();
    case Kind::kBytes:
      return value.as<Bytes>().bytes.empty();
    case Kind::kList:
      return value.as<List>().size() == 0;
    case Kind::kMap:
      return value.as<Map>().size() == 0;
    case Kind::kDuration:
      return value.as<Duration>() == Duration{};
    case Kind::kOptional:
      return value_in(value) == nullptr || is_zero(*value_in(value));
    case Kind::kTimestamp:
    case Kind::kType:
    case Kind::kAccess:
    case Kind::kQuantity:
    case Kind::kUrl:
    case Kind::kIp:
    case Kind::kCidr:
    case Kind::kFormat:
      return false;
  }
  return false;
}

Result<Value> of_non_zero(const Call& call) {
  return is_zero(call[0]) ? Value::none() : Value::some(call[0]);
}

Result<Value> has_value(const Call& call) {
  return Value(value_in(call[0]) != nullptr);
}

Result<Value> value(const Call& call) {
  if (const Value* found = value_in(call[0])) return *found;
  return evaluation_error("optional.none() dereference");
}

Result<Value> or_other(const Call& call) {
  return value_in(call[0]) != nullptr ? call[0] : call[1];
}

Result<Value> or_value(const Call& call) {
  const Value* found = value_in(call[0]);
  return found != nullptr ? *found : call[1];
}

/// A whole number, of whatever type it is.
std::optional<std::int64_t> whole(const Value& index) {
  constexpr double kLimit = 9223372036854775808.0;
  constexpr auto kIntMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (index.is(Kind::kInt)) return index.as<std::int64_t>();
  if (index.is(Kind::kUint)) return static_cast<std::int64_t>(std::min(index.as<std::uint64_t>(), kIntMax));
  if (!index.is(Kind::kDouble)) return std::nullopt;
  const double number = index.as<double>();
  if (!(number > -kLimit && number < kLimit)) return std::nullopt;
  const auto cut = static_cast<std::int64_t>(number);
  return static_cast<double>(cut) == number ? std::optional(cut) : std::nullopt;
}

Result<Value> element_of(const Call& call, const Value& container) {
  if (container.is(Kind::kMap)) {
    const Map& map = container.as<Map>();
    if (!call.budget.charge(map.search_cost())) return over_budget();
    const std::optional<Value> found = map.find(call[1]);
    return found ? Value::some(*found) : Value::none();
  }
  if (!container.is(Kind::kList)) return no_such_overload();
  const List& list = container.as<List>();
  const std::optional<std::int64_t> index = whole(call[1]);
  if (!index) return no_such_overload();
  const bool inside = *index >= 0 && static_cast<std::uint64_t>(*index) < list.size();
  return inside ? Value::some(list.at(static_cast<std::size_t>(*index))) : Value::none();
}

Result<Value> optional_element(const Call& call) {
  return element_of(call, call[0]);
}

Result<Value> element_of_optional(const Call& call) {
  const Value* container = value_in(call[0]);
  return container == nullptr ? Result<Value>(Value::none()) : element_of(call, *container);
}

constexpr std::array kOptionalRows = std::to_array<Definition>({
    {"optional.of", "A -> optional_type(A)", of},
    {"optional.ofNonZeroValue", "A -> optional_type(A)", of_non_zero},
    {"optional.none", " -> optional_type(A)", none},
    {"hasValue", "optional_type(A) -> bool", has_value, kMember},
    {"value", "optional_type(A) -> A", value, kMember},
    {"or", "optional_type(A), optional_type(A) -> optional_type(A)", or_other, kMember},
    {"orValue", "optional_type(A), A -> A", or_value, kMember},
    {"_[?_]", "list(A), int -> optional_type(A)", optional_element},
    {"_[?_]", "map(A, B), A -> optional_type(B)", optional_element},
    {"_[?_]", "optional_type(list(A)), int -> optional_type(A)", element_of_optional},
    {"_[?_]", "optional_type(map(A, B)), A -> optional_type(B)", element_of_optional},
    {"_[_]", "optional_type(list(A)), int -> optional_type(A)", element_of_optional},
    {"_[_]", "optional_type(map(A, B)), A -> optional_type(B)", element_of_optional},
});

}  // namespace

std::span<const Definition> optionals() {
  return kOptionalRows;
}

}  // namespace spillway::cel
