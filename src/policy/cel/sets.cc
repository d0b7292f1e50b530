// Lists as sets: sets.contains, sets.equivalent, sets.intersects.
#include "policy/cel/functions.h"

#include <array>

namespace spillway::cel {

namespace {

bool has_element(const List& list, const Value& element, Budget& budget) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (equal(list.at(i), element, budget)) return true;
    if (budget.spent()) return false;
  }
  return false;
}

/// True if every element of `part` is an element of `whole`.
bool holds_all(const List& whole, const List& part, Budget& budget) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (!has_element(whole, part.at(i), budget)) return false;
  }
  return true;
}

/// A search that ran out of budget has found nothing, which is no answer.
Result<Value> answer(const Call& call, bool found) {
  if (call.budget.spent()) return over_budget();
  return Value(found);
}

Result<Value> set_contains(const Call& call) {
  return answer(call, holds_all(call[0].as<List>(), call[1].as<List>(), call.budget));
}

Result<Value> set_equivalent(const Call& call) {
  const List& a = call[0].as<List>();
  const List& b = call[1].as<List>();
  return answer(call, holds_all(a, b, call.budget) && holds_all(b, a, call.budget));
}

Result<Value> set_intersects(const Call& call) {
  const List& a = call[0].as<List>();
  const List& b = call[1].as<List>();
  bool found = false;
  for (std::size_t i = 0; i < b.size() && !found && call.budget.charge(1); ++i) {
    found = has_element(a, b.at(i), call.budget);
  }
  return answer(call, found);
}

constexpr std::array kSetRows = std::to_array<Definition>({
    {"sets.contains", "list(A), list(A) -> bool", set_contains},
    {"sets.equivalent", "list(A), list(A) -> bool", set_equivalent},
    {"sets.intersects", "list(A), list(A) -> bool", set_intersects},
});

}  // namespace

std::span<const Definition> sets() {
  return kSetRows;
}

}  // namespace spillway::cel
