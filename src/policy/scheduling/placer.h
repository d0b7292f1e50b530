// Places pod after pod while the nodes change in between: the result of place_pod over the same nodes, computed again
// only for nodes that changed since a pod with equal requirements was placed. The results for such pods are kept as a
// tournament: every node's score, and of each two nodes the better one, up to the best. If a verdict depends on other
// nodes (topology spread, inter-pod affinity, pods that are nominated to a node), the scores stay valid and the winner
// does not: a pass over the nodes finds it.
// Thread: one. Complexity of place(): log nodes for each changed node; one pass over the nodes if others matter; all
// rules on all nodes for a pod with new requirements, with claims, with a nominated node, or that fits nowhere. Bounds:
// kRankingsMax tournaments, about 110 bytes a node each.
#pragma once

#include "policy/scheduling/place.h"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::scheduling {

class Placer {
 public:
  /// At least one profile, each with another scheduler name.
  explicit Placer(std::vector<Profile> profiles = {Profile()});

  ~Placer();
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  static constexpr std::size_t kRankingsMax = 8;

  /// Loads by the name of the node.
  const std::map<std::string, policy::NodeLoad>& nodes() const { return nodes_; }

  /// Adds or replaces the node; the load of its pods is kept.
  void set_node(std::shared_ptr<const api::Node> node);
  /// Replaces the pods that count on an existing node.
  void set_pods(const std::string& node, std::span<const api::Pod* const> pods);
  /// Counts one more pod on a node; for an unknown node nothing is counted.
  void add_pod(const std::string& node, const api::Pod& pod);
  void erase(const std::string& node);

  /// The caller keeps namespaces, Services, owners and promised nodes in it up to date; pods are added here.
  Surroundings& surroundings() { return around_; }

  const Surroundings& surroundings() const { return around_; }

  /// The profile of the scheduler that the pod names; the first one if there is none of that name.
  const Profile& profile_of(const api::Pod& pod) const;

  /// As place_pod(), with the pod's profile.
  Placement place(const api::Pod& pod, const VolumeFilter& volumes = {});

 private:
  class Ranking;
  using Entry = std::map<std::string, policy::NodeLoad>::value_type;

  void count_images(const policy::NodeLoad& load, bool there);
  void mark_changed(const std::string& node);
  void mark_new_set();
  void number_nodes();
  Topology& topology();
  /// Places a pod that names its nodes; nullopt: none of them accepts it.
  std::optional<Placement> place_by_name(const PendingPod& pending, const Relations& relations);
  Ranking& ranking_for(const api::Pod& pod, PendingPod pending);

  std::vector<Profile> profiles_;  // never changed
  Surroundings around_;
  std::map<std::string, policy::NodeLoad> nodes_;
  std::map<std::string, std::size_t> holders_;  // number of nodes with each image, by every name of the image
  std::vector<const Entry*> order_;             // nodes by name; empty: must be computed
  std::optional<Topology> topology_;            // nullopt: must be computed
  std::list<Ranking> rankings_;                 // the last used first
};

}  // namespace spillway::scheduling
