#include "policy/admission/topology.h"

#include "policy/admission/option_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <compare>
#include <set>
#include <tuple>

namespace spillway::admission {
namespace {

constexpr std::string_view kPreferClosest = "prefer-closest-numa-nodes";
constexpr std::string_view kMaxAllowable = "max-allowable-numa-nodes";

int count_of(NumaSet nodes) {
  return std::popcount(nodes);
}

NumaSet first_nodes(int count) {
  return count >= 64 ? ~NumaSet{0} : (NumaSet{1} << count) - 1;
}

Result<std::int64_t> parse_count(std::string_view name, const std::string& text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size() && !(text.size() > 1 && text.starts_with("+-"))) {
    return value;
  }
  return invalid({}, "unable to convert policy option to integer \"{}\": strconv.Atoi: parsing \"{}\": {}", name, text,
                 error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax");
}

using HintLists = std::vector<std::vector<TopologyHint>>;

HintLists lists_of(const std::vector<std::optional<ResourceHints>>& providers) {
  HintLists lists;
  for (const auto& provider : providers) {
    if (!provider || provider->empty()) {
      lists.push_back({{std::nullopt, true}});
      continue;
    }
    for (const auto& [resource, hints] : *provider) {
      if (!hints) {
        lists.push_back({{std::nullopt, true}});
      } else if (hints->empty()) {
        lists.push_back({{std::nullopt, false}});
      } else {
        lists.push_back(*hints);
      }
    }
  }
  return lists;
}

void keep_single_nodes(HintLists& lists) {
  for (std::vector<TopologyHint>& hints : lists) {
    std::erase_if(
        hints, [](const TopologyHint& hint) { return !hint.preferred || (hint.nodes && count_of(*hint.nodes) != 1); });
  }
}

/// The combination of one hint from each list so far, reduced to what later lists depend on: equal values have equal
/// results.
struct Partial {
  NumaSet nodes = 0;             // the intersection
  std::optional<NumaSet> named;  // the first set that a hint named; cleared when no hint is preferred any more
  bool preferred = true;

  friend auto operator<=>(const Partial&, const Partial&) = default;
};

Partial combine(Partial partial, const TopologyHint& hint) {
  if (!hint.preferred) partial.preferred = false;
  if (hint.nodes) {
    partial.nodes &= *hint.nodes;
    if (!partial.named) partial.named = *hint.nodes;
    if (*partial.named != *hint.nodes) partial.preferred = false;
  }
  if (!partial.preferred) partial.named.reset();
  return partial;
}

/// Every outcome that some combination of one hint per list has, without empty sets.
std::set<Partial> combinations(const HintLists& lists, NumaSet all_nodes) {
  std::set<Partial> outcomes{{.nodes = all_nodes, .named = std::nullopt, .preferred = true}};
  for (const std::vector<TopologyHint>& hints : lists) {
    std::set<Partial> next;
    for (const Partial& partial : outcomes) {
      for (const TopologyHint& hint : hints) {
        const Partial combined = combine(partial, hint);
        if (combined.nodes != 0) next.insert(combined);
      }
    }
    outcomes = std::move(next);
  }
  return outcomes;
}

/// Mean over all ordered pairs, a node with itself included.
double average_distance(const TopologySetup& setup, NumaSet nodes) {
  double sum = 0;
  double pairs = 0;
  for (std::size_t from = 0; from < setup.distances.size(); ++from) {
    for (std::size_t to = 0; to < setup.distances[from].size(); ++to) {
      if ((nodes >> from & 1) == 0 || (nodes >> to & 1) == 0) continue;
      sum += static_cast<double>(setup.distances[from][to]);
      pairs += 1;
    }
  }
  return pairs == 0 ? 0 : sum / pairs;
}

/// Order of the candidates, best first; total. `narrowest`: the most nodes that some list needs at least.
class Preference {
 public:
  Preference(const TopologySetup& setup, int narrowest) : setup_(setup), narrowest_(narrowest) {}

  bool better(const Partial& a, const Partial& b) const {
    if (a.preferred != b.preferred) return a.preferred;
    if (!a.preferred) {
      const auto left = distance_to_narrowest(a.nodes);
      const auto right = distance_to_narrowest(b.nodes);
      if (left != right) return left < right;
    }
    return better_set(a.nodes, b.nodes);
  }

 private:
  /// Exactly as wide as needed, then narrower ones (wide first), then wider ones (narrow first).
  std::pair<int, int> distance_to_narrowest(NumaSet nodes) const {
    const int size = count_of(nodes);
    if (size == narrowest_) return {0, 0};
    return size < narrowest_ ? std::pair{1, -size} : std::pair{2, size};
  }

  bool better_set(NumaSet a, NumaSet b) const {
    if (count_of(a) != count_of(b)) return count_of(a) < count_of(b);
    if (setup_.prefer_closest && setup_.policy != TopologyPolicy::kSingleNumaNode) {
      const double left = average_distance(setup_, a);
      const double right = average_distance(setup_, b);
      if (left != right) return left < right;
    }
    return a < b;
  }

  const TopologySetup& setup_;
  int narrowest_;
};

int narrowest_of(const HintLists& lists) {
  int narrowest = 0;
  for (const std::vector<TopologyHint>& hints : lists) {
    std::optional<int> smallest;
    for (const TopologyHint& hint : hints) {
      if (hint.nodes) smallest = std::min(count_of(*hint.nodes), smallest.value_or(count_of(*hint.nodes)));
    }
    narrowest = std::max(narrowest, smallest.value_or(0));
  }
  return narrowest;
}

}  // namespace

std::string_view to_string(TopologyPolicy policy) {
  switch (policy) {
    case TopologyPolicy::kNone:
      return "none";
    case TopologyPolicy::kBestEffort:
      return "best-effort";
    case TopologyPolicy::kRestricted:
      return "restricted";
    case TopologyPolicy::kSingleNumaNode:
      return "single-numa-node";
  }
  return "";
}

std::string text_of(const TopologyHint& hint) {
  if (!hint.nodes) return "any";
  std::string text;
  for (int node = 0; node < 64; ++node) {
    if (((*hint.nodes >> node) & 1U) == 0) continue;
    if (!text.empty()) text += ',';
    text += std::to_string(node);
  }
  return text;
}

std::vector<std::string> topology_policy_names() {
  std::vector<std::string> names;
  for (const TopologyPolicy each : {TopologyPolicy::kNone, TopologyPolicy::kBestEffort, TopologyPolicy::kRestricted,
                                    TopologyPolicy::kSingleNumaNode}) {
    names.emplace_back(to_string(each));
  }
  return names;
}

std::vector<std::string> topology_scope_names() {
  return {"container", "pod"};
}

std::vector<std::string> topology_option_names() {
  return {std::string(kPreferClosest), std::string(kMaxAllowable)};
}

Result<TopologySetup> parse_topology(const TopologyOptions& options, const NumaMachine& machine) {
  TopologySetup setup;
  setup.all_nodes = first_nodes(machine.nodes_count);
  if (options.policy == "none") return setup;
  std::int64_t nodes_max = kNumaNodesMax;
  for (const auto& [name, text] : options.policy_options) {
    if (name == kPreferClosest) {
      SPILLWAY_TRY(closest, parse_option(name, text));
      setup.prefer_closest = closest;
    } else if (name == kMaxAllowable) {
      SPILLWAY_TRY(count, parse_count(name, text));
      if (count < kNumaNodesMax) {
        return invalid({}, "the minimum value of \"{}\" should not be less than {}", name, kNumaNodesMax);
      }
      nodes_max = count;
    } else {
      return invalid({}, "unknown Topology Manager Policy option: \"{}\"", name);
    }
  }
  if (setup.prefer_closest) {
    if (!machine.distances) {
      return invalid({}, "cannot discover NUMA topology: error getting NUMA distances from cadvisor");
    }
    setup.distances = *machine.distances;
  }
  if (machine.nodes_count > nodes_max) {
    return invalid({}, "unsupported on machines with more than {} NUMA Nodes", nodes_max);
  }
  if (options.policy == "best-effort") {
    setup.policy = TopologyPolicy::kBestEffort;
  } else if (options.policy == "restricted") {
    setup.policy = TopologyPolicy::kRestricted;
  } else if (options.policy == "single-numa-node") {
    setup.policy = TopologyPolicy::kSingleNumaNode;
  } else {
    return invalid({}, "unknown policy: \"{}\"", options.policy);
  }
  if (options.scope != "container" && options.scope != "pod") {
    return invalid({}, "unknown scope: \"{}\"", options.scope);
  }
  setup.scope = options.scope == "pod" ? TopologyScope::kPod : TopologyScope::kContainer;
  return setup;
}

TopologyHint merge_hints(const TopologySetup& setup, const std::vector<std::optional<ResourceHints>>& providers) {
  if (setup.policy == TopologyPolicy::kNone) return {};
  HintLists lists = lists_of(providers);
  if (setup.policy == TopologyPolicy::kSingleNumaNode) keep_single_nodes(lists);
  const Preference preference(setup, narrowest_of(lists));
  const std::set<Partial> outcomes = combinations(lists, setup.all_nodes);
  const auto best =
      std::ranges::min_element(outcomes, [&](const Partial& a, const Partial& b) { return preference.better(a, b); });
  TopologyHint merged{setup.all_nodes, false};
  if (best != outcomes.end()) merged = {best->nodes, best->preferred};
  if (setup.policy == TopologyPolicy::kSingleNumaNode && merged.nodes == setup.all_nodes) merged.nodes.reset();
  return merged;
}

bool accepts(TopologyPolicy policy, const TopologyHint& merged) {
  switch (policy) {
    case TopologyPolicy::kNone:
    case TopologyPolicy::kBestEffort:
      return true;
    case TopologyPolicy::kRestricted:
    case TopologyPolicy::kSingleNumaNode:
      return merged.preferred;
  }
  return false;
}

}  // namespace spillway::admission
