// The rules that a scheduler's configuration may change; default member values are the default profile of Kubernetes
// 1.32.
// Thread: any (plain values). Source: Kubernetes docs, "Scheduler Configuration"; kube-scheduler configuration (v1),
// NodeResourcesFitArgs, NodeResourcesBalancedAllocationArgs, InterPodAffinityArgs, PodTopologySpreadArgs,
// NodeAffinityArgs, DefaultPreemptionArgs.
#pragma once

#include "api/object/node_affinity.h"
#include "api/object/selector.h"
#include "policy/scheduling/node_shares.h"
#include "policy/scheduling/plugins.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::scheduling {

/// The preference of the plugin NodeResourcesFit.
struct ScoringStrategy {
  enum class Type { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };

  struct Resource {
    std::string name;
    std::int64_t weight = 1;

    friend bool operator==(const Resource&, const Resource&) = default;
  };

  struct Point {
    std::int64_t utilization = 0;  // percent
    std::int64_t score = 0;        // 0..10

    friend bool operator==(const Point&, const Point&) = default;
  };

  Type type = Type::kLeastAllocated;
  std::vector<Resource> resources{{"cpu", 1}, {"memory", 1}};
  std::vector<Point> shape;  // for kRequestedToCapacityRatio: at least one point, by utilization

  friend bool operator==(const ScoringStrategy&, const ScoringStrategy&) = default;
};

/// The evenness with which pods are spread over the values of a label of nodes.
struct SpreadConstraint {
  std::int64_t max_skew = 1;
  std::string topology_key;
  bool required = false;  // DoNotSchedule, not ScheduleAnyway
  api::LabelSelector selector;
  std::int64_t min_domains = 1;
  bool honors_affinity = true;  // nodes that the pod's selector and affinity rule out do not count
  bool honors_taints = false;   // nodes whose taints repel the pod do not count

  friend bool operator==(const SpreadConstraint&, const SpreadConstraint&) = default;
};

/// Node affinity that a profile adds to its pods: required and preferred nodes.
struct AddedAffinity {
  std::optional<api::NodeSelector> required;
  std::vector<api::PreferredNodeTerm> preferred;

  friend bool operator==(const AddedAffinity&, const AddedAffinity&) = default;
};

/// Extended resources that NodeResourcesFit ignores: that one, or all of a domain.
struct IgnoredResources {
  std::vector<std::string> names;
  std::vector<std::string> groups;  // "example.com"

  bool contains(std::string_view resource) const;

  friend bool operator==(const IgnoredResources&, const IgnoredResources&) = default;
};

struct Profile {
  /// The name of the scheduler whose pods use this profile.
  std::string scheduler = "default-scheduler";
  NodeConditions conditions = NodeConditions::kByTaints;
  FilterSet left_out;
  ScoreWeights weights;
  ScoringStrategy fit;
  IgnoredResources ignored;
  std::vector<std::string> balanced{"cpu", "memory"};  // resources whose shares should be equal
  AddedAffinity added_affinity;
  NodeShare share;       // share of the nodes that extenders are called for: percentageOfNodesToScore
  bool preempts = true;  // DefaultPreemption
  CandidateShare preemption;
  std::int64_t hard_pod_affinity_weight = 1;
  bool ignore_preferred_terms_of_existing_pods = false;
  /// Constraints of pods that have none of their own; the selector is that of their Services and owner. nullopt: those
  /// of the system, a skew of 3 over hosts and of 5 over zones, as a preference; nodes without a zone are not affected
  /// by zones.
  std::optional<std::vector<SpreadConstraint>> default_constraints;

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// The profile without changes.
const Profile& default_profile();

}  // namespace spillway::scheduling
