// Features that nodes declare in their status because not every kubelet has them, and what needs them.
// Thread: any (pure). Source: KEP-5328 (node declared features); vectors scheduling/declared_features.
#pragma once

#include "api/object/pod.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::policy {

inline constexpr std::string_view kRestartAllFeature = "RestartAllContainersOnContainerExits";

/// Features that a node must have to run the pod, sorted.
std::vector<std::string_view> features_to_run(const api::PodSpec& spec);

/// Features that the node of a bound pod must have to follow a change of its spec, sorted.
std::vector<std::string_view> features_to_update(const api::PodSpec& before, const api::PodSpec& after);

/// The features of `needed` that are not declared, in order: "A, B"; empty: none is missing.
std::string missing_features(std::span<const std::string_view> needed, std::span<const std::string> declared);

}  // namespace spillway::policy
