#include "policy/admission/cpu_assignment.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::admission {
namespace {

Error too_few(int requested, int available) {
  return make_error(ErrorCode::kConflict, "not enough cpus available to satisfy request: requested={}, available={}",
                    requested, available);
}

/// Takes free CPUs until the wanted number is reached.
class Taker {
 public:
  Taker(const CpuTopology& topology, const CpuSet& free, int count)
      : topology_(topology), free_(free & topology.all()), missing_(count) {
    const CpuSet all = topology.all();
    const bool numa_outermost =
        topology.ids(CpuLevel::kSocket, all).size() >= topology.ids(CpuLevel::kNuma, all).size();
    levels_ = numa_outermost ? std::array{CpuLevel::kNuma, CpuLevel::kSocket, CpuLevel::kCore}
                             : std::array{CpuLevel::kSocket, CpuLevel::kNuma, CpuLevel::kCore};
  }

  CpuSet run() {
    for (std::size_t depth = 0; depth < levels_.size() && missing_ > 0; ++depth) take_whole_units(depth);
    for (const int core : in_order(levels_.size() - 1)) {
      for (const int cpu : free_& topology_.cpus_in(CpuLevel::kCore, core)) {
        if (missing_ > 0) take({cpu});
      }
    }
    return taken_;
  }

 private:
  int free_in(CpuLevel level, int id) const { return (free_ & topology_.cpus_in(level, id)).size(); }

  /// Units of that depth with free CPUs: outer units in their order, within each those with the fewest free CPUs first.
  std::vector<int> in_order(std::size_t depth) const {
    const CpuLevel level = levels_[depth];
    std::vector<int> order;
    const auto append = [&](const CpuSet& within) {
      const std::set<int> ids = topology_.ids(level, free_ & within);
      std::vector<int> sorted(ids.begin(), ids.end());
      std::ranges::stable_sort(sorted, {}, [&](int id) { return free_in(level, id); });
      for (const int id : sorted) {
        if (std::ranges::find(order, id) == order.end()) order.push_back(id);
      }
    };
    if (depth == 0) {
      append(free_);
    } else {
      for (const int outer : in_order(depth - 1)) append(topology_.cpus_in(levels_[depth - 1], outer));
    }
    return order;
  }

  void take_whole_units(std::size_t depth) {
    for (const int id : in_order(depth)) {
      const CpuSet unit = topology_.cpus_in(levels_[depth], id);
      if (unit.size() <= missing_ && free_.contains(unit)) take(unit);
    }
  }

  void take(const CpuSet& cpus) {
    taken_.add(cpus);
    free_.remove(cpus);
    missing_ -= cpus.size();
  }

  const CpuTopology& topology_;
  CpuSet free_;
  int missing_;
  CpuSet taken_;
  std::array<CpuLevel, 3> levels_{};
};

/// Calls `visit` with every subset of `size`, in lexical order, until it returns false.
void each_subset(const std::vector<int>& from, std::size_t size,
                 const std::function<bool(const std::vector<int>&)>& visit) {
  if (size == 0 || size > from.size()) return;
  std::vector<std::size_t> picks(size);
  std::iota(picks.begin(), picks.end(), std::size_t{0});
  for (;;) {
    std::vector<int> subset;
    for (const std::size_t pick : picks) subset.push_back(from[pick]);
    if (!visit(subset)) return;
    std::size_t last = size;
    while (last > 0 && picks[last - 1] == from.size() - size + last - 1) --last;
    if (last == 0) return;
    ++picks[last - 1];
    for (std::size_t i = last; i < size; ++i) picks[i] = picks[i - 1] + 1;
  }
}

/// Free CPUs by NUMA node.
using FreeByNode = std::map<int, int>;

/// The smaller, the more even: with the sum given, the deviation grows with the squares.
std::int64_t unevenness(const FreeByNode& free) {
  std::int64_t sum = 0;
  for (const auto& [node, count] : free) sum += std::int64_t{count} * count;
  return sum;
}

struct Spread {
  std::vector<int> nodes;
  int each = 0;                // CPUs taken from every node
  std::vector<int> remainder;  // nodes that give one more group, in turn
};

class Spreader {
 public:
  Spreader(FreeByNode free, int count, int group) : free_(std::move(free)), count_(count), group_(group) {
    for (const auto& [node, cpus] : free_) nodes_.push_back(node);
  }

  /// The best over sets of `size` nodes; nullopt: none of them can.
  std::optional<Spread> best_of(int size) {
    best_.reset();
    each_subset(nodes_, static_cast<std::size_t>(size), [this](const std::vector<int>& nodes) {
      consider(nodes);
      return true;
    });
    return best_;
  }

 private:
  void consider(const std::vector<int>& nodes) {
    int groups = 0;
    for (const int node : nodes) groups += free_.at(node) / group_;
    if (groups * group_ < count_) return;
    Spread spread{nodes, count_ / static_cast<int>(nodes.size()) / group_ * group_, {}};
    FreeByNode left = free_;
    for (const int node : nodes) {
      if ((left[node] -= spread.each) < 0) return;
    }
    const int rest = count_ - spread.each * static_cast<int>(nodes.size());
    if (rest == 0) return keep(spread, unevenness(left));
    std::vector<int> able;
    for (const int node : nodes) {
      if (left[node] >= group_) able.push_back(node);
    }
    // Tries many nodes before few.
    for (std::size_t size = able.size(); size > 0; --size) {
      each_subset(able, size, [&](const std::vector<int>& givers) {
        if (const auto after = give(left, givers, rest)) {
          spread.remainder = givers;
          keep(spread, unevenness(*after));
        }
        return true;
      });
    }
  }

  std::optional<FreeByNode> give(FreeByNode left, const std::vector<int>& givers, int rest) const {
    while (rest > 0) {
      bool given = false;
      for (const int node : givers) {
        if (rest == 0 || left[node] < group_) continue;
        left[node] -= group_;
        rest -= group_;
        given = true;
      }
      if (!given) return std::nullopt;
    }
    return left;
  }

  void keep(const Spread& spread, std::int64_t uneven) {
    if (best_ && best_uneven_ <= uneven) return;
    best_ = spread;
    best_uneven_ = uneven;
  }

  FreeByNode free_;
  int count_;
  int group_;
  std::vector<int> nodes_;
  std::optional<Spread> best_;
  std::int64_t best_uneven_ = 0;
};

}  // namespace

Result<CpuSet> take_packed(const CpuTopology& topology, const CpuSet& free, int count) {
  if (free.size() < count) return too_few(count, free.size());
  if (count <= 0) return CpuSet{};
  return Taker(topology, free, count).run();
}

Result<CpuSet> take_spread(const CpuTopology& topology, const CpuSet& free, int count, int group) {
  if (free.size() < count) return too_few(count, free.size());
  if (count <= 0) return CpuSet{};
  const std::set<int> nodes = topology.ids(CpuLevel::kNuma, topology.all());
  if (count % group != 0 || nodes.empty()) return take_packed(topology, free, count);
  FreeByNode free_by_node;
  for (const int node : nodes) free_by_node[node] = (free & topology.cpus_in(CpuLevel::kNuma, node)).size();
  const int able =
      static_cast<int>(std::ranges::count_if(free_by_node, [](const auto& each) { return each.second > 0; }));
  const int per_node = std::max(1, static_cast<int>(topology.places.size() / nodes.size()));
  const int most = std::min((count - 1) / group + 1, able);
  Spreader spreader(std::move(free_by_node), count, group);
  for (int size = (count - 1) / per_node + 1; size <= most; ++size) {
    const std::optional<Spread> spread = spreader.best_of(size);
    if (!spread) continue;
    CpuSet left = free;
    CpuSet taken;
    const auto take = [&](int node, int some) -> Outcome {
      SPILLWAY_TRY(cpus, take_packed(topology, left & topology.cpus_in(CpuLevel::kNuma, node), some));
      taken.add(cpus);
      left.remove(cpus);
      return {};
    };
    for (const int node : spread->nodes) SPILLWAY_TRY_VOID(take(node, spread->each));
    while (taken.size() < count) {
      const int before = taken.size();
      for (const int node : spread->remainder) {
        if (taken.size() == count || (left & topology.cpus_in(CpuLevel::kNuma, node)).size() < group) continue;
        SPILLWAY_TRY_VOID(take(node, group));
      }
      if (taken.size() == before) return too_few(count, taken.size());
    }
    return taken;
  }
  return take_packed(topology, free, count);
}

}  // namespace spillway::admission
