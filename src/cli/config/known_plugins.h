// The plug-ins of the default profile, by their names. Source: Kubernetes docs, "Scheduler Configuration", scheduling
// plugins.
#pragma once

#include "policy/scheduling/plugins.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::cli {

inline constexpr std::string_view kQueueSort = "PrioritySort";
inline constexpr std::string_view kBinder = "DefaultBinder";
inline constexpr std::string_view kPreemption = "DefaultPreemption";

/// A plug-in of the default profile, and the extension points where it can be switched.
struct KnownPlugin {
  std::string_view name;
  std::optional<scheduling::Filter> filter;
  std::int64_t scheduling::ScoreWeights::* weight = nullptr;
};

inline constexpr std::array<KnownPlugin, 19> kPlugins{{
    {"SchedulingGates", {}, nullptr},
    {kQueueSort, {}, nullptr},
    {"NodeUnschedulable", scheduling::Filter::kNodeUnschedulable, nullptr},
    {"NodeName", scheduling::Filter::kNodeName, nullptr},
    {"TaintToleration", scheduling::Filter::kTaintToleration, &scheduling::ScoreWeights::taints},
    {"NodeAffinity", scheduling::Filter::kNodeAffinity, &scheduling::ScoreWeights::affinity},
    {"NodePorts", scheduling::Filter::kNodePorts, nullptr},
    {"NodeResourcesFit", scheduling::Filter::kNodeResourcesFit, &scheduling::ScoreWeights::resources},
    {"VolumeRestrictions", scheduling::Filter::kVolumeRestrictions, nullptr},
    {"NodeVolumeLimits", scheduling::Filter::kNodeVolumeLimits, nullptr},
    {"VolumeBinding", scheduling::Filter::kVolumeBinding, nullptr},
    {"VolumeZone", scheduling::Filter::kVolumeZone, nullptr},
    {"PodTopologySpread", scheduling::Filter::kPodTopologySpread, &scheduling::ScoreWeights::spread},
    {"InterPodAffinity", scheduling::Filter::kInterPodAffinity, &scheduling::ScoreWeights::inter_pod},
    {kPreemption, {}, nullptr},
    {"NodeResourcesBalancedAllocation", {}, &scheduling::ScoreWeights::balanced},
    {"ImageLocality", {}, &scheduling::ScoreWeights::image_locality},
    {kBinder, {}, nullptr},
    {"NodeDeclaredFeatures", scheduling::Filter::kNodeDeclaredFeatures, nullptr},
}};

}  // namespace spillway::cli
