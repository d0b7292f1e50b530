// The parts of a profile that may be left out or count differently: filters and aspects of scores, by the names of the
// plug-ins that they are. Thread: any (plain values). Source: Kubernetes docs, "Scheduler Configuration".
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway::scheduling {

enum class Filter : std::uint8_t {
  kNodeUnschedulable,
  kNodeName,
  kTaintToleration,
  kNodeAffinity,
  kNodePorts,
  kNodeResourcesFit,
  kVolumeRestrictions,
  kNodeVolumeLimits,
  kVolumeBinding,
  kVolumeZone,
  kPodTopologySpread,
  kInterPodAffinity,
  kNodeDeclaredFeatures,
  // Used with NodeConditions::kLiterally alone.
  kCheckNodeCondition,
  kCheckNodeMemoryPressure,
  kCheckNodePidPressure,
  kCheckNodeDiskPressure,
  // No plug-in: a server that is called over HTTP.
  kExtender,
};

/// All filters, in the order of evaluation.
inline constexpr std::array<Filter, 18> kFilters{Filter::kCheckNodeCondition,
                                                 Filter::kNodeUnschedulable,
                                                 Filter::kNodeName,
                                                 Filter::kTaintToleration,
                                                 Filter::kNodeAffinity,
                                                 Filter::kNodePorts,
                                                 Filter::kNodeResourcesFit,
                                                 Filter::kVolumeRestrictions,
                                                 Filter::kNodeVolumeLimits,
                                                 Filter::kVolumeBinding,
                                                 Filter::kVolumeZone,
                                                 Filter::kCheckNodeMemoryPressure,
                                                 Filter::kCheckNodePidPressure,
                                                 Filter::kCheckNodeDiskPressure,
                                                 Filter::kPodTopologySpread,
                                                 Filter::kInterPodAffinity,
                                                 Filter::kNodeDeclaredFeatures,
                                                 Filter::kExtender};

/// "NodeUnschedulable", …
std::string_view to_string(Filter filter);

/// The way in which pods are kept away from nodes in trouble: by the taints that the lifecycle controller derives from
/// their conditions, or, as up to 1.17 where those taints are absent, by the conditions themselves.
enum class NodeConditions { kByTaints, kLiterally };

class FilterSet {
 public:
  constexpr FilterSet() = default;

  constexpr void insert(Filter filter) { bits_ |= bit(filter); }

  constexpr void erase(Filter filter) { bits_ &= ~bit(filter); }

  constexpr bool contains(Filter filter) const { return (bits_ & bit(filter)) != 0; }

  friend constexpr bool operator==(FilterSet, FilterSet) = default;

 private:
  static constexpr std::uint32_t bit(Filter filter) { return 1U << static_cast<unsigned>(filter); }

  std::uint32_t bits_ = 0;
};

/// The weight of each aspect in a node's score; 0: it is left out.
struct ScoreWeights {
  std::int64_t resources = 1;       // NodeResourcesFit
  std::int64_t balanced = 1;        // NodeResourcesBalancedAllocation
  std::int64_t image_locality = 1;  // ImageLocality
  std::int64_t taints = 3;          // TaintToleration
  std::int64_t affinity = 2;        // NodeAffinity
  std::int64_t inter_pod = 2;       // InterPodAffinity
  std::int64_t spread = 2;          // PodTopologySpread

  friend bool operator==(const ScoreWeights&, const ScoreWeights&) = default;
};

}  // namespace spillway::scheduling
