// The software part of a node's status: versions, images, handlers, volumes, the endpoint of the agent.
// Thread: any (pure). Source: Kubernetes docs, "Node Status", general information; spec "Node agent", 4.3-4.8, 4.13;
// vectors node-agent/node_status_setters.
#pragma once

#include "agent/contract/runtime_ports.h"
#include "api/object/node.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// "containerd://1.7.22"; "containerd://Unknown" without a version.
std::string runtime_version_text(std::string_view runtime, const std::optional<std::string>& version);

struct VersionFacts {
  std::string kernel_version;
  std::string os_image;
  std::string container_runtime_version;
  std::string agent_version;
};

/// An error is passed on with "error getting version info: " before it; nothing is set then.
Outcome set_version_info(api::Node& node, const Result<VersionFacts>& facts);

/// The first `images_max` (-1: all) with five names each. An error is passed on with "error getting image list: "
/// before it; no images are reported then. `images`: largest first.
Outcome set_images(api::Node& node, const Result<std::vector<NodeImage>>& images, std::int64_t images_max);

struct PlatformFacts {
  std::string operating_system;
  std::string architecture;
};

void set_platform(api::Node& node, const PlatformFacts& facts);

void set_runtime_handlers(api::Node& node, const std::vector<RuntimeHandler>& handlers);

/// Features of Kubernetes that not every kubelet has and this agent has, sorted. Source: KEP-5328.
std::vector<std::string> declared_features();

/// nullopt: the runtime does not report it; the present value stays.
void set_features(api::Node& node, std::optional<bool> supplemental_groups_policy);

/// nullopt: unknown yet; the reported volumes stay.
void set_volumes_in_use(api::Node& node, const std::optional<std::vector<std::string>>& volumes);

}  // namespace spillway::agent
