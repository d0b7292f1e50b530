// The library of quantities: quantity, isQuantity, and their functions.
#include "policy/cel/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace spillway::cel {

namespace {

using api::Quantity;

const Quantity& amount(const Call& call, std::size_t index) {
  return *call[index].as<Amount>().quantity;
}

Result<Value> quantity_of_text(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  auto made = api::parse_quantity(call.string(0));
  if (!made) return evaluation_error(made.error().message);
  return Value::quantity(*std::move(made));
}

Result<Value> is_quantity(const Call& call) {
  if (!call.budget.charge_bytes(call.string(0).size())) return over_budget();
  return Value(api::parse_quantity(call.string(0)).has_value());
}

Result<Value> sign_of(const Call& call) {
  return Value(std::int64_t{amount(call, 0).sign()});
}

/// A whole number that an int can hold; false for one of more than 18 digits, which upstream represents in another way.
bool is_whole(const Quantity& quantity) {
  constexpr auto kDigitsMax = 18;
  const std::string text = quantity.to_string();
  const auto digits = std::ranges::count_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return digits <= kDigitsMax && Quantity::of_units(quantity.value()) == quantity;
}

Result<Value> is_integer(const Call& call) {
  return Value(is_whole(amount(call, 0)));
}

Result<Value> as_integer(const Call& call) {
  if (!is_whole(amount(call, 0))) return evaluation_error("cannot convert value to integer");
  return Value(amount(call, 0).value());
}

/// The value in the finest unit whose number an int can hold.
Result<Value> as_float(const Call& call) {
  constexpr int kFinest = -9;
  constexpr int kLargest = 60;
  const Quantity& quantity = amount(call, 0);
  for (int scale = kFinest; scale <= kLargest; scale += 3) {
    const std::int64_t number = quantity.scaled_value(scale);
    if (number == std::numeric_limits<std::int64_t>::max() || number == std::numeric_limits<std::int64_t>::min()) {
      continue;
    }
    const double factor = std::pow(10.0, std::abs(scale));
    const auto whole = static_cast<double>(number);
    return Value(scale < 0 ? whole / factor : whole * factor);
  }
  return evaluation_error("cannot convert value to float");
}

Result<Value> sum_of(const Call& call) {
  return Value::quantity(amount(call, 0) + amount(call, 1));
}

Result<Value> sum_with_int(const Call& call) {
  return Value::quantity(amount(call, 0) + Quantity::of_units(call[1].as<std::int64_t>()));
}

Result<Value> difference(const Call& call) {
  return Value::quantity(amount(call, 0) - amount(call, 1));
}

Result<Value> difference_with_int(const Call& call) {
  return Value::quantity(amount(call, 0) - Quantity::of_units(call[1].as<std::int64_t>()));
}

Result<Value> is_greater(const Call& call) {
  return Value(amount(call, 0) > amount(call, 1));
}

Result<Value> is_less(const Call& call) {
  return Value(amount(call, 0) < amount(call, 1));
}

Result<Value> compare_to(const Call& call) {
  const auto order = amount(call, 0) <=> amount(call, 1);
  return Value(std::int64_t{order < 0 ? -1 : order > 0 ? 1 : 0});
}

constexpr std::array kQuantityRows = std::to_array<Definition>({
    {"quantity", "string -> kubernetes.Quantity", quantity_of_text},
    {"isQuantity", "string -> bool", is_quantity},
    {"sign", "kubernetes.Quantity -> int", sign_of},
    {"isInteger", "kubernetes.Quantity -> bool", is_integer, kMember},
    {"asInteger", "kubernetes.Quantity -> int", as_integer, kMember},
    {"asApproximateFloat", "kubernetes.Quantity -> double", as_float, kMember},
    {"add", "kubernetes.Quantity, kubernetes.Quantity -> kubernetes.Quantity", sum_of, kMember},
    {"add", "kubernetes.Quantity, int -> kubernetes.Quantity", sum_with_int, kMember},
    {"sub", "kubernetes.Quantity, kubernetes.Quantity -> kubernetes.Quantity", difference, kMember},
    {"sub", "kubernetes.Quantity, int -> kubernetes.Quantity", difference_with_int, kMember},
    {"isGreaterThan", "kubernetes.Quantity, kubernetes.Quantity -> bool", is_greater, kMember},
    {"isLessThan", "kubernetes.Quantity, kubernetes.Quantity -> bool", is_less, kMember},
    {"compareTo", "kubernetes.Quantity, kubernetes.Quantity -> int", compare_to, kMember},
});

}  // namespace

std::span<const Definition> quantities() {
  return kQuantityRows;
}

}  // namespace spillway::cel
