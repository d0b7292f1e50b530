// Functions of lists and maps.
#include "policy/cel/functions.h"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace spillway::cel {

namespace {

Result<Value> size_of_list(const Call& call) {
  return Value(static_cast<std::int64_t>(call[0].as<List>().size()));
}

Result<Value> size_of_map(const Call& call) {
  return Value(static_cast<std::int64_t>(call[0].as<Map>().size()));
}

Result<Value> is_sorted(const Call& call) {
  const List& list = call[0].as<List>();
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    if (!call.budget.charge(1)) return over_budget();
    const std::optional<int> order = compare(list.at(i), list.at(i + 1));
    if (order && *order > 0) return Value(false);  // incomparable elements count as in order
  }
  return Value(true);
}

/// Sums a list whose elements have one type with addition.
Result<Value> sum(const Call& call) {
  const List& list = call[0].as<List>();
  if (list.size() == 0) return Value(std::int64_t{0});
  Value total = list.at(0);
  static const auto kSums = overloads_of("_+_", !kMember, 2);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::array<Value, 2> both{total, list.at(i)};
    const Kind kind = both[1].kind();
    const bool summed = both[1].is_number() || kind == Kind::kDuration;
    if (!summed || kind != total.kind()) return no_such_overload();
    if (!call.budget.charge(1)) return over_budget();
    if (i == 0) continue;
    for (const Overload& add : kSums) {
      if (!fits(add.parameters[0].kind, both[0]) || !fits(add.parameters[1].kind, both[1])) continue;
      SPILLWAY_TRY(next, add.function({.arguments = both, .budget = call.budget}));
      total = std::move(next);
      break;
    }
  }
  return total;
}

/// The smallest or largest element.
Result<Value> extreme(const Call& call, std::string_view name, int wanted) {
  const List& list = call[0].as<List>();
  if (list.size() == 0) return evaluation_error(fmt::format("{} called on empty list", name));
  Value best = list.at(0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!call.budget.charge(1)) return over_budget();
    const std::optional<int> order = compare(list.at(i), best);
    if (order && *order == wanted) best = list.at(i);
  }
  return best;
}

Result<Value> least(const Call& call) {
  return extreme(call, "min", -1);
}

Result<Value> greatest(const Call& call) {
  return extreme(call, "max", 1);
}

Result<Value> list_index_of(const Call& call) {
  const List& list = call[0].as<List>();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (equal(list.at(i), call[1], call.budget)) return Value(static_cast<std::int64_t>(i));
    if (call.budget.spent()) return over_budget();
  }
  return Value(std::int64_t{-1});
}

Result<Value> list_last_index_of(const Call& call) {
  const List& list = call[0].as<List>();
  for (std::size_t i = list.size(); i > 0; --i) {
    if (equal(list.at(i - 1), call[1], call.budget)) return Value(static_cast<std::int64_t>(i - 1));
    if (call.budget.spent()) return over_budget();
  }
  return Value(std::int64_t{-1});
}

constexpr std::array kListRows = std::to_array<Definition>({
    {"size", "list(A) -> int", size_of_list},
    {"size", "list(A) -> int", size_of_list, kMember},
    {"size", "map(A, B) -> int", size_of_map},
    {"size", "map(A, B) -> int", size_of_map, kMember},
    {"sum", "list(int) -> int", sum, kMember},
    {"sum", "list(uint) -> uint", sum, kMember},
    {"sum", "list(double) -> double", sum, kMember},
    {"sum", "list(duration) -> duration", sum, kMember},
    {"indexOf", "list(A), A -> int", list_index_of, kMember},
    {"lastIndexOf", "list(A), A -> int", list_last_index_of, kMember},
});

constexpr std::array<std::string_view, 8> kSortable{"int",    "uint",  "double",   "bool",
                                                    "string", "bytes", "duration", "timestamp"};

struct Signatures {
  std::array<std::string, kSortable.size()> sorted;
  std::array<std::string, kSortable.size()> element;
};

const Signatures& signatures() {
  static const Signatures kMade = [] {
    Signatures made;
    for (std::size_t i = 0; i < kSortable.size(); ++i) {
      made.sorted[i] = fmt::format("list({}) -> bool", kSortable[i]);
      made.element[i] = fmt::format("list({0}) -> {0}", kSortable[i]);
    }
    return made;
  }();
  return kMade;
}

}  // namespace

std::span<const Definition> lists() {
  static const std::vector<Definition> kAll = [] {
    std::vector<Definition> made(kListRows.begin(), kListRows.end());
    for (std::size_t i = 0; i < kSortable.size(); ++i) {
      made.push_back({"isSorted", signatures().sorted[i], is_sorted, kMember});
      made.push_back({"min", signatures().element[i], least, kMember});
      made.push_back({"max", signatures().element[i], greatest, kMember});
    }
    return made;
  }();
  return kAll;
}

}  // namespace spillway::cel
