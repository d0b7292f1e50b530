// Registry credentials of pods whose containers come from images, and problems with images. Thread: any (pure). Source:
// spec "Pod lifecycle", 4, 8.
#pragma once

#include "agent/containers/container_env.h"
#include "agent/contract/ports.h"

#include <set>
#include <string_view>
#include <vector>

namespace spillway::agent {

/// The Secrets of a pod's imagePullSecrets, none of which has to be there.
void add_pull_secrets(const api::Pod& pod, std::set<DataReference>& references);

/// The existing Secrets with credentials for registries, in the pod's order.
std::vector<PullSecret> pull_secrets_of(const api::Pod& pod, const EnvSources& sources);

/// True if the waiting reason of a container is about its image; then the event has no further text.
bool is_image_problem(std::string_view reason);

}  // namespace spillway::agent
