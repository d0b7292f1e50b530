// The operators: sums, products, comparisons, membership, elements. Overflows are errors.
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

namespace spillway::cel {

namespace {

Error int_overflow() {
  return evaluation_error("integer overflow");
}

Error uint_overflow() {
  return evaluation_error("unsigned integer overflow");
}

template <typename T>
Error overflow() {
  return std::is_signed_v<T> ? int_overflow() : uint_overflow();
}

template <typename T>
Result<Value> add_whole(const Call& call) {
  T sum = 0;
  if (__builtin_add_overflow(call[0].as<T>(), call[1].as<T>(), &sum)) return overflow<T>();
  return Value(sum);
}

template <typename T>
Result<Value> subtract_whole(const Call& call) {
  T difference = 0;
  if (__builtin_sub_overflow(call[0].as<T>(), call[1].as<T>(), &difference)) return overflow<T>();
  return Value(difference);
}

template <typename T>
Result<Value> multiply_whole(const Call& call) {
  T product = 0;
  if (__builtin_mul_overflow(call[0].as<T>(), call[1].as<T>(), &product)) return overflow<T>();
  return Value(product);
}

/// The lowest integer has no opposite.
template <typename T>
bool overflows_division(T a, T b) {
  if constexpr (std::is_signed_v<T>) return a == std::numeric_limits<T>::min() && b == -1;
  return false;
}

template <typename T>
Result<Value> divide_whole(const Call& call) {
  const T by = call[1].as<T>();
  if (by == 0) return evaluation_error("division by zero");
  if (overflows_division(call[0].as<T>(), by)) return overflow<T>();
  return Value(static_cast<T>(call[0].as<T>() / by));
}

template <typename T>
Result<Value> modulo(const Call& call) {
  const T by = call[1].as<T>();
  if (by == 0) return evaluation_error("modulus by zero");
  if (overflows_division(call[0].as<T>(), by)) return overflow<T>();
  return Value(static_cast<T>(call[0].as<T>() % by));
}

Result<Value> add_doubles(const Call& call) {
  return Value(call[0].as<double>() + call[1].as<double>());
}

Result<Value> subtract_doubles(const Call& call) {
  return Value(call[0].as<double>() - call[1].as<double>());
}

Result<Value> multiply_doubles(const Call& call) {
  return Value(call[0].as<double>() * call[1].as<double>());
}

Result<Value> divide_doubles(const Call& call) {
  return Value(call[0].as<double>() / call[1].as<double>());
}

Result<Value> negate_int(const Call& call) {
  std::int64_t negative = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, call[0].as<std::int64_t>(), &negative)) return int_overflow();
  return Value(negative);
}

Result<Value> negate_double(const Call& call) {
  return Value(-call[0].as<double>());
}

Result<Value> negate_bool(const Call& call) {
  return Value(!call[0].as<bool>());
}

Result<Value> join_strings(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size() + call.string(1).size())) return over_budget();
  return Value::text(std::string(call.string(0)).append(call.string(1)));
}

Result<Value> join_bytes(const Call& call) {
  const std::string_view a = call[0].as<Bytes>().bytes;
  const std::string_view b = call[1].as<Bytes>().bytes;
  if (!call.budget.charge_bytes(a.size() + b.size())) return over_budget();
  return Value::bytes(std::string(a).append(b));
}

/// In a list that is a set, or a map, existing elements are not added: in a map they are replaced.
Result<Value> merge_lists(const Call& call) {
  const List& a = call[0].as<List>();
  const List& b = call[1].as<List>();
  std::vector<Value> merged;
  for (std::size_t i = 0; i < a.size(); ++i) merged.push_back(a.at(i));
  for (std::size_t i = 0; i < b.size(); ++i) {
    const Value added = b.at(i);
    const auto known = std::ranges::find_if(
        merged, [&](const Value& element) { return same_element(a, element, added, call.budget); });
    if (call.budget.spent()) return over_budget();
    if (known == merged.end()) {
      merged.push_back(added);
    } else if (a.kind() == ListKind::kMap) {
      *known = added;
    }
  }
  return Value(List(std::move(merged), a.kind(), a.keys()));
}

Result<Value> join_lists(const Call& call) {
  const List& a = call[0].as<List>();
  const List& b = call[1].as<List>();
  if (!call.budget.charge(a.size() + b.size())) return over_budget();
  if (a.kind() != ListKind::kPlain) return merge_lists(call);
  std::vector<Value> joined;
  joined.reserve(a.size() + b.size());
  for (std::size_t i = 0; i < a.size(); ++i) joined.push_back(a.at(i));
  for (std::size_t i = 0; i < b.size(); ++i) joined.push_back(b.at(i));
  return Value(List(std::move(joined)));
}

Result<Value> is_equal(const Call& call) {
  return Value(equal(call[0], call[1], call.budget));
}

Result<Value> is_unequal(const Call& call) {
  return Value(!equal(call[0], call[1], call.budget));
}

template <typename Holds>
Result<Value> relation(const Call& call, Holds holds) {
  if (call[0].is(Kind::kString) && !call.budget.charge_bytes(call.string(0).size())) return over_budget();
  const std::optional<int> order = compare(call[0], call[1]);
  if (!order) return evaluation_error("NaN values cannot be ordered");
  return Value(holds(*order));
}

Result<Value> less(const Call& call) {
  return relation(call, [](int order) { return order < 0; });
}

Result<Value> at_most(const Call& call) {
  return relation(call, [](int order) { return order <= 0; });
}

Result<Value> greater(const Call& call) {
  return relation(call, [](int order) { return order > 0; });
}

Result<Value> at_least(const Call& call) {
  return relation(call, [](int order) { return order >= 0; });
}

Result<Value> in_list(const Call& call) {
  const List& list = call[1].as<List>();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (equal(call[0], list.at(i), call.budget)) return Value(true);
    if (call.budget.spent()) return over_budget();
  }
  return Value(false);
}

Result<Value> in_map(const Call& call) {
  const Map& map = call[1].as<Map>();
  if (!call.budget.charge(map.search_cost())) return over_budget();
  return Value(map.find(call[0]).has_value());
}

constexpr std::array kArithmeticRows = std::to_array<Definition>({
    {"_+_", "int, int -> int", add_whole<std::int64_t>},
    {"_+_", "uint, uint -> uint", add_whole<std::uint64_t>},
    {"_+_", "double, double -> double", add_doubles},
    {"_+_", "string, string -> string", join_strings},
    {"_+_", "bytes, bytes -> bytes", join_bytes},
    {"_+_", "list(A), list(A) -> list(A)", join_lists},
    {"_-_", "int, int -> int", subtract_whole<std::int64_t>},
    {"_-_", "uint, uint -> uint", subtract_whole<std::uint64_t>},
    {"_-_", "double, double -> double", subtract_doubles},
    {"_*_", "int, int -> int", multiply_whole<std::int64_t>},
    {"_*_", "uint, uint -> uint", multiply_whole<std::uint64_t>},
    {"_*_", "double, double -> double", multiply_doubles},
    {"_/_", "int, int -> int", divide_whole<std::int64_t>},
    {"_/_", "uint, uint -> uint", divide_whole<std::uint64_t>},
    {"_/_", "double, double -> double", divide_doubles},
    {"_%_", "int, int -> int", modulo<std::int64_t>},
    {"_%_", "uint, uint -> uint", modulo<std::uint64_t>},
    {"-_", "int -> int", negate_int},
    {"-_", "double -> double", negate_double},
    {"!_", "bool -> bool", negate_bool},
    {"_==_", "A, A -> bool", is_equal},
    {"_!=_", "A, A -> bool", is_unequal},
    {"@in", "A, list(A) -> bool", in_list},
    {"@in", "A, map(A, B) -> bool", in_map},
    {"_[_]", "list(A), int -> A", nullptr},
    {"_[_]", "map(A, B), A -> B", nullptr},
});

struct Relation {
  std::string_view name;
  Function function;
};

constexpr std::array<Relation, 4> kRelations{{{"_<_", less}, {"_<=_", at_most}, {"_>_", greater}, {"_>=_", at_least}}};

/// Numbers have an order whatever their types are.
constexpr std::array<std::string_view, 14> kOrdered{
    "bool, bool -> bool",           "int, int -> bool",          "int, uint -> bool",
    "int, double -> bool",          "uint, int -> bool",         "uint, uint -> bool",
    "uint, double -> bool",         "double, int -> bool",       "double, uint -> bool",
    "double, double -> bool",       "string, string -> bool",    "bytes, bytes -> bool",
    "timestamp, timestamp -> bool", "duration, duration -> bool"};

}  // namespace

std::span<const Definition> arithmetic() {
  static const std::vector<Definition> kAll = [] {
    std::vector<Definition> made(kArithmeticRows.begin(), kArithmeticRows.end());
    for (const Relation& relation : kRelations) {
      for (const std::string_view signature : kOrdered) made.push_back({relation.name, signature, relation.function});
    }
    return made;
  }();
  return kAll;
}

}  // namespace spillway::cel
