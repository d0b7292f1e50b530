// Containers that end before the others begin: what was given to them alone is free for those that follow.
// Thread: any (pure). Source: Kubernetes docs, "Init Containers", "Sidecar Containers".
#pragma once

#include "api/object/pod.h"

#include <string_view>

namespace spillway::admission {

/// An init container that is no sidecar.
bool is_plain_init(const api::Pod& pod, std::string_view container);

}  // namespace spillway::admission
