// Where a pod goes: filter, score, pick. Of equal nodes the one with fewer pods wins, then the name decides.
// Thread: any (pure). Source: spec "Pod admission", 15; vectors admission/scheduler_filter.
#pragma once

#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/filter.h"
#include "policy/scheduling/score.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

struct Placement {
  std::optional<std::string> node;      // nullopt: it fits nowhere
  std::vector<policy::Reason> reasons;  // of the choice, or why every node was refused
  /// "0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable."; empty if a node was found.
  std::string message;
  /// Nodes that refused it for what pods hold: those pods leaving might help.
  std::vector<std::string> resolvable;
};

/// "0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.": the parts sorted as text.
std::string unavailable_text(std::size_t nodes, const std::map<std::string, std::size_t>& counts);

/// `nodes` by name.
Placement place_pod(const api::Pod& pod, const std::map<std::string, policy::NodeLoad>& nodes,
                    NodeConditions conditions = NodeConditions::kByTaints, const VolumeFilter& volumes = {});

/// The share of `nodes` that hold an image, in parts per million.
std::int64_t share_ppm(std::size_t holders, std::size_t nodes);

/// A node that the pod fits on.
struct FittingNode {
  const std::string* name = nullptr;
  std::int64_t pod_count = 0;
  Score score;
};

/// The best of them; at least one.
Placement choose(std::span<const FittingNode> candidates);
/// With its reasons: its total among so many candidates.
Placement placement_on(const FittingNode& chosen, std::int64_t total, std::size_t candidates);

/// What keeps the pod from every node alike: "0/3 nodes are available: pod has unbound immediate ….".
Placement refuse_everywhere(std::string_view problem, std::size_t nodes);

}  // namespace spillway::scheduling
