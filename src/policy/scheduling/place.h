// Places a pod: filter, score, pick. Among nodes of equal score the one with fewer pods wins, then the name decides.
// Thread: any (pure). Source: spec "Pod admission", 15; spec "Scheduler and workloads", 3; vectors
// admission/scheduler_filter, scheduling/full_schedule.
#pragma once

#include "api/object/pod.h"
#include "policy/node_load.h"
#include "policy/reason.h"
#include "policy/scheduling/filter.h"
#include "policy/scheduling/plugins.h"
#include "policy/scheduling/profile.h"
#include "policy/scheduling/relations.h"
#include "policy/scheduling/score.h"
#include "policy/scheduling/surroundings.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

struct Placement {
  std::optional<std::string> node;      // nullopt: no node accepts the pod
  std::vector<policy::Reason> reasons;  // for the chosen node, or why every node was refused
  /// "0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable."; empty if a node was found.
  std::string message;
  /// Nodes that refused the pod for resources of other pods: preempting those might help.
  std::vector<std::string> resolvable;
  /// The plug-ins that refused the pod on some node.
  FilterSet refused_by;
};

/// "0/3 nodes are available: 1 Insufficient memory, 2 node(s) were unschedulable.": the parts sorted as text.
std::string unavailable_text(std::size_t nodes, const std::map<std::string, std::size_t>& counts);

/// The results of filters and scores on every node, for one pod.
struct Survey {
  std::vector<FittingNode> fitting;        // by name, with the scores; the promised node alone, if that one takes it
  std::map<std::string, Refusal> refused;  // by node
  std::vector<std::string> excluded;       // nodes outside of those that the pod names
  bool contradicts_itself = false;         // the pod's own terms contradict each other: no node is filtered
  bool scores_spread = false;              // the plug-in PodTopologySpread affects the score
  bool scores_inter_pod = false;           // the plugin InterPodAffinity has scores
  std::size_t scanned = 0;                 // nodes that were filtered
};

/// The number of nodes that a search filters, and the index at which it begins, modulo their number.
struct SearchShare {
  std::size_t first = 0;
  std::size_t enough = std::numeric_limits<std::size_t>::max();  // the search ends after that many fitting nodes
};

/// `nodes` by name; `around`: the pods of all nodes, and the other objects that filters use.
Survey survey_nodes(const api::Pod& pod, const std::map<std::string, policy::NodeLoad>& nodes,
                    const Profile& profile = default_profile(), const VolumeFilter& volumes = {},
                    const Surroundings& around = {}, const SearchShare& share = {});
/// The placement of a pod that fits on none of `nodes` nodes.
Placement refusal_of(Survey survey, std::size_t nodes);
/// The best of these nodes as they are now, with so many points more; no node and no words: none of them takes it.
Placement place_among(const api::Pod& pod, const std::map<std::string, std::int64_t>& points,
                      const std::map<std::string, policy::NodeLoad>& nodes, const Profile& profile,
                      const VolumeFilter& volumes, const Surroundings& around);
Placement place_pod(const api::Pod& pod, const std::map<std::string, policy::NodeLoad>& nodes,
                    const Profile& profile = default_profile(), const VolumeFilter& volumes = {},
                    const Surroundings& around = {});

/// Filters one node, by its number in the topology of the relations, with the pods that are nominated to it: the pod
/// must fit with them and without. `load` replaces the load of the node in the topology.
std::optional<Refusal> refuse_with_load(const PendingPod& pending, const Relations& relations, const Topology& nodes,
                                        std::size_t node, const policy::NodeLoad& load, const VolumeFilter& volumes,
                                        const Surroundings& around);
std::optional<Refusal> refuse_on(const PendingPod& pending, const Relations& relations, const Topology& nodes,
                                 std::size_t node, const VolumeFilter& volumes, const Surroundings& around);

/// The share of `nodes` that hold an image, 0..1.
double node_share(std::size_t holders, std::size_t nodes);

/// The best of the candidates, of which there must be one.
Placement choose(std::span<const FittingNode> candidates, const ScoreWeights& weights);
/// The placement on a node with its reasons: total score and number of candidates.
Placement placement_on(const FittingNode& chosen, std::int64_t total, std::size_t candidates);

/// The refusal of a pod by something that does not depend on nodes: "0/3 nodes are available: pod has unbound immediate
/// ….".
Placement refuse_everywhere(std::string_view problem, std::size_t nodes);

}  // namespace spillway::scheduling
