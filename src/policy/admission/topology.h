// NUMA alignment: merges the hints of all managers for a container into one, and applies the policy to the result.
// Thread: any (pure). Bounds: NUMA nodes < 64; a merge costs hints x distinct intermediate sets, not their product.
// Source: Kubernetes docs, "Control Topology Management Policies on a node"; KEP-693; spec "Pod admission", 5; vectors
// admission/topology_hints.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::admission {

inline constexpr int kNumaNodesMax = 8;  // unless max-allowable-numa-nodes allows more

/// A set of NUMA nodes; bit n is node n.
using NumaSet = std::uint64_t;

/// The NUMA nodes for a container. No set: no preference.
struct TopologyHint {
  std::optional<NumaSet> nodes;
  bool preferred = false;

  friend bool operator==(const TopologyHint&, const TopologyHint&) = default;
};

/// Resource -> its possible hints. nullopt for a resource: it does not mind. An empty list: it cannot be had.
using ResourceHints = std::map<std::string, std::optional<std::vector<TopologyHint>>, std::less<>>;

enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class TopologyScope { kContainer, kPod };

/// "single-numa-node".
std::string_view to_string(TopologyPolicy policy);
/// "0,2"; "any" without a set.
std::string text_of(const TopologyHint& hint);

/// The machine's nodes, and the options for their use.
struct TopologySetup {
  TopologyPolicy policy = TopologyPolicy::kNone;
  TopologyScope scope = TopologyScope::kContainer;
  NumaSet all_nodes = 1;
  bool prefer_closest = false;
  std::vector<std::vector<std::uint64_t>> distances;  // one row per node; filled if prefer_closest
};

struct TopologyOptions {
  std::string policy = "none";
  std::string scope = "container";
  std::map<std::string, std::string, std::less<>> policy_options;
};

struct NumaMachine {
  int nodes_count = 1;
  std::optional<std::vector<std::vector<std::uint64_t>>> distances;
};

/// Names of all policies, scopes and options.
std::vector<std::string> topology_policy_names();
std::vector<std::string> topology_scope_names();
std::vector<std::string> topology_option_names();

/// Parses the configured options. With policy "none" nothing else is checked. kInvalid, in upstream's words: unknown
/// option, policy or scope, bad value, too many NUMA nodes, unknown distances.
Result<TopologySetup> parse_topology(const TopologyOptions& options, const NumaMachine& machine);

/// The best hint that respects all of `providers` (nullopt: one without opinion). With policy none: no set, not
/// preferred.
TopologyHint merge_hints(const TopologySetup& setup, const std::vector<std::optional<ResourceHints>>& providers);

/// True if the policy lets a container start with that hint.
bool accepts(TopologyPolicy policy, const TopologyHint& merged);

}  // namespace spillway::admission
