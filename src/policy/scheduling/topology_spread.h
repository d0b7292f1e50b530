// Pods spread evenly over the values of a label of nodes: the plugin PodTopologySpread. Counts once per newcomer, then
// answers for each node. Thread: any (pure). Source: Kubernetes docs, "Pod Topology Spread Constraints"; KEP-895,
// KEP-3094, KEP-3243; vectors scheduling/topology_spread.
#pragma once

#include "policy/scheduling/filter.h"
#include "policy/scheduling/pending_pod.h"
#include "policy/scheduling/profile.h"
#include "policy/scheduling/surroundings.h"
#include "policy/scheduling/topology.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spillway::scheduling {

class TopologySpread {
 public:
  /// The pod and the surroundings must outlive it.
  TopologySpread(const PendingPod& pod, const Surroundings& around, Topology& nodes, const Profile& profile);

  /// True if a node might be refused.
  bool filters() const { return !required_.empty(); }

  /// True if the scores of nodes may differ.
  bool scores() const { return !wished_.empty(); }

  /// The refusal of the node with this number; nullopt: the node accepts the pod.
  std::optional<Refusal> refuse(std::size_t node) const;

  /// As refuse(), without the reason.
  bool admits(std::size_t node) const { return find_broken(node) == nullptr; }

  /// Counts as if that pod were added, or removed; filters alone.
  void add(std::size_t node, const api::Pod& other) { count(node, other, 1); }

  void remove(std::size_t node, const api::Pod& other) { count(node, other, -1); }

  /// The scores of these nodes, not yet in proportion to each other; nullopt: the node lacks a label and scores
  /// nothing.
  std::vector<std::optional<std::int64_t>> raw_scores(std::span<const std::size_t> candidates) const;

 private:
  struct Counted {
    SpreadConstraint constraint;
    std::shared_ptr<const Topology::Domains> domains;
    std::vector<std::int64_t> pods;  // in each domain
    std::vector<bool> eligible;      // domains with an eligible node
    std::int64_t self = 0;           // the pod itself counts, or not
    std::optional<std::int64_t> least;

    void find_least();
  };

  static std::int64_t skew_on(const Counted& counted, std::size_t node);
  /// nullptr: none.
  const Counted* find_broken(std::size_t node) const;
  void count(std::size_t node, const api::Pod& other, std::int64_t pods);
  /// The number of matching pods on each node.
  std::vector<std::int64_t> count_pods(const api::LabelSelector& selector) const;
  bool has_all_labels(const std::vector<Counted>& constraints, std::size_t node) const;
  /// True if some nodes do not count.
  bool is_choosy(const SpreadConstraint& constraint) const;
  bool counts(const SpreadConstraint& constraint, std::size_t node) const;
  /// Sums a count of pods per node into one per domain.
  std::vector<std::int64_t> sum_domains(const Counted& wished, const std::vector<std::int64_t>& on_node) const;

  const PendingPod& pod_;
  const Surroundings& around_;
  Topology* nodes_;
  std::vector<Counted> required_;
  std::vector<Counted> wished_;
  bool needs_all_labels_ = true;
};

}  // namespace spillway::scheduling
