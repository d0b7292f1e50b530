// Values that may be absent: optional.of, optional.none, hasValue, value, or, orValue, and members and elements that
// may be absent ([?i]; .? is a node of its own).
#include "policy/cel/functions.h"

#include <array>
#include <cstdint>

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

constexpr std::array kOptionalRows = std::to_array<Definition>({
    {"optional.of", "A -> optional_type(A)", of},
    {"optional.ofNonZeroValue", "A -> optional_type(A)", of_non_zero},
    {"optional.none", " -> optional_type(A)", none},
    {"hasValue", "optional_type(A) -> bool", has_value, kMember},
    {"value", "optional_type(A) -> A", value, kMember},
    {"or", "optional_type(A), optional_type(A) -> optional_type(A)", nullptr, kMember},
    {"orValue", "optional_type(A), A -> A", nullptr, kMember},
    {"_[?_]", "list(A), int -> optional_type(A)", nullptr},
    {"_[?_]", "map(A, B), A -> optional_type(B)", nullptr},
    {"_[?_]", "optional_type(list(A)), int -> optional_type(A)", nullptr},
    {"_[?_]", "optional_type(map(A, B)), A -> optional_type(B)", nullptr},
    {"_[_]", "optional_type(list(A)), int -> optional_type(A)", nullptr},
    {"_[_]", "optional_type(map(A, B)), A -> optional_type(B)", nullptr},
});

}  // namespace

std::span<const Definition> optionals() {
  return kOptionalRows;
}

}  // namespace spillway::cel
