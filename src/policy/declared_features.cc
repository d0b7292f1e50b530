#include "policy/declared_features.h"

#include <algorithm>

namespace spillway::policy {
namespace {

constexpr std::string_view kPodLevelResize = "InPlacePodLevelResourcesVerticalScaling";
constexpr std::string_view kInitResize = "InPlacePodVerticalScalingInitContainers";
constexpr std::string_view kHostNetworkUsers = "UserNamespacesHostNetworkSupport";

/// The resources of an init container that is no sidecar are others.
bool resizes_init_container(const api::PodSpec& before, const api::PodSpec& after) {
  return std::ranges::any_of(after.init_containers, [&before](const api::Container& each) {
    const auto was = std::ranges::find(before.init_containers, each.name, &api::Container::name);
    return was != before.init_containers.end() && !api::is_sidecar(each) && was->resources != each.resources;
  });
}

}  // namespace

std::vector<std::string_view> features_to_run(const api::PodSpec& spec) {
  std::vector<std::string_view> needed;
  if (api::may_restart_all(spec)) needed.push_back(kRestartAllFeature);
  if (spec.host_network && spec.host_users == std::optional(false)) needed.push_back(kHostNetworkUsers);
  return needed;
}

std::vector<std::string_view> features_to_update(const api::PodSpec& before, const api::PodSpec& after) {
  std::vector<std::string_view> needed;
  const api::ResourceRequirements none;
  if (before.resources.value_or(none) != after.resources.value_or(none)) needed.push_back(kPodLevelResize);
  if (resizes_init_container(before, after)) needed.push_back(kInitResize);
  return needed;
}

std::string missing_features(std::span<const std::string_view> needed, std::span<const std::string> declared) {
  std::string missing;
  for (const std::string_view each : needed) {
    if (std::ranges::find(declared, each) != declared.end()) continue;
    if (!missing.empty()) missing += ", ";
    missing += each;
  }
  return missing;
}

}  // namespace spillway::policy
