// Pods that want to be near each other, or apart: the plugin InterPodAffinity. Counts once per newcomer, over all
// pods, then answers for each node. Thread: any (pure). Source: Kubernetes docs, "Assigning Pods to Nodes", inter-pod
// affinity; vectors scheduling/interpod_affinity.
#pragma once

#include "api/object/pod.h"
#include "policy/scheduling/filter.h"
#include "policy/scheduling/pod_terms.h"
#include "policy/scheduling/profile.h"
#include "policy/scheduling/surroundings.h"
#include "policy/scheduling/topology.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::scheduling {

class InterPod {
 public:
  /// The pod and the surroundings must outlive it.
  InterPod(const api::Pod& pod, const Surroundings& around, Topology& nodes, const Profile& profile);

  /// True if a node might be refused.
  bool filters() const { return filters_; }

  /// True if the scores of nodes may differ.
  bool scores() const { return !score_.empty(); }

  /// The refusal of the node with this number; nullopt: the node accepts the pod.
  std::optional<Refusal> refuse(std::size_t node) const;

  /// As refuse(), without the reason.
  bool admits(std::size_t node) const { return find_broken(node) == Rule::kNone; }

  /// The score before it is scaled to that of the other nodes.
  std::int64_t raw_score(std::size_t node) const;

  /// Counts as if that pod were added, or removed; filters alone.
  void add(std::size_t node, const api::Pod& other) { count(node, other, 1); }

  void remove(std::size_t node, const api::Pod& other) { count(node, other, -1); }

 private:
  /// Pods, or weights, for each value of a label.
  struct Tally {
    std::shared_ptr<const Topology::Domains> domains;
    std::vector<std::int64_t> amount;
    bool touched = false;  // some node has the label
    std::int64_t sum = 0;

    std::int64_t at(std::size_t node) const;
    void add(std::size_t node, std::int64_t by);
  };

  enum class Rule : std::uint8_t { kNone, kNear, kApart, kApartFromOthers };

  using Tallies = std::map<std::string, Tally>;

  Tally& tally(Tallies& tallies, const std::string& label) const;

  /// The effect of pods of one sort on the newcomer: the tally in which such a pod counts, and its weight.
  struct Effect {
    Tallies* tallies = nullptr;
    const std::string* label = nullptr;
    std::int64_t weight = 0;
  };

  std::vector<Effect> filter_effects(const std::string& ns, const api::StringMap& labels, const PodTerms& terms);
  void add_score_effects(const PodSort& sort, const Profile& profile, std::vector<Effect>& effects);
  void count(std::size_t node, const api::Pod& other, std::int64_t pods);
  void count(const PodSort& sort, const std::vector<Effect>& effects);
  bool is_first_of_its_group() const;
  Rule find_broken(std::size_t node) const;

  const api::Pod& pod_;
  const Surroundings& around_;
  Topology* nodes_;
  PodTerms terms_;
  api::StringMap own_namespace_;  // the labels of the pod's namespace
  bool filters_ = false;
  Tallies existing_;  // by term of existing pods: conflicts with the new pod
  Tallies near_;      // pods that match all required affinity terms
  Tallies apart_;     // pods that match a required anti-affinity term
  Tallies score_;
};

}  // namespace spillway::scheduling
