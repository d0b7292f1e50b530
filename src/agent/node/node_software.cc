#include "agent/node/node_software.h"

#include "policy/declared_features.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::string_view kPodLevelResize = "InPlacePodLevelResourcesVerticalScaling";
constexpr std::string_view kInitResize = "InPlacePodVerticalScalingInitContainers";
constexpr std::size_t kNamesOfAnImageMax = 5;  // as upstream: bounds the size of the node object

api::ContainerImage reported(const NodeImage& image) {
  api::ContainerImage result{.names = image.repo_digests, .size_bytes = image.size_bytes};
  result.names.insert(result.names.end(), image.repo_tags.begin(), image.repo_tags.end());
  if (result.names.size() > kNamesOfAnImageMax) result.names.resize(kNamesOfAnImageMax);
  return result;
}

}  // namespace

std::string runtime_version_text(std::string_view runtime, const std::optional<std::string>& version) {
  return fmt::format("{}://{}", runtime, version.value_or("Unknown"));
}

Outcome set_version_info(api::Node& node, const Result<VersionFacts>& facts) {
  if (!facts) return Error{facts.error().code, "error getting version info: " + facts.error().text(), {}};
  api::NodeSystemInfo& info = node.status.node_info;
  info.kernel_version = facts->kernel_version;
  info.os_image = facts->os_image;
  info.container_runtime_version = facts->container_runtime_version;
  info.kubelet_version = facts->agent_version;
  info.kube_proxy_version = facts->agent_version;
  return {};
}

Outcome set_images(api::Node& node, const Result<std::vector<NodeImage>>& images, std::int64_t images_max) {
  node.status.images.clear();
  if (!images) return Error{images.error().code, "error getting image list: " + images.error().text(), {}};
  for (const NodeImage& image : *images) {
    if (images_max >= 0 && node.status.images.size() >= static_cast<std::size_t>(images_max)) break;
    node.status.images.push_back(reported(image));
  }
  return {};
}

void set_platform(api::Node& node, const PlatformFacts& facts) {
  node.status.node_info.operating_system = facts.operating_system;
  node.status.node_info.architecture = facts.architecture;
}

void set_runtime_handlers(api::Node& node, const std::vector<RuntimeHandler>& handlers) {
  node.status.runtime_handlers.clear();
  for (const RuntimeHandler& handler : handlers) {
    node.status.runtime_handlers.push_back(
        {.name = handler.name,
         .features = api::NodeRuntimeHandlerFeatures{.recursive_read_only_mounts = handler.recursive_read_only_mounts,
                                                     .user_namespaces = handler.user_namespaces}});
  }
}

std::vector<std::string> declared_features() {
  return {std::string(kPodLevelResize), std::string(kInitResize), std::string(policy::kRestartAllFeature)};
}

void set_features(api::Node& node, std::optional<bool> supplemental_groups_policy) {
  if (supplemental_groups_policy)
    node.status.features = api::NodeFeatures{.supplemental_groups_policy = supplemental_groups_policy};
}

void set_volumes_in_use(api::Node& node, const std::optional<std::vector<std::string>>& volumes) {
  if (volumes) node.status.volumes_in_use = *volumes;
}

}  // namespace spillway::agent
