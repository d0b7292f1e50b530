// The containers that a containerd has records of, those that its CRI plug-in does not list included.
// Thread: any but the loop: the call waits, at most kContainerListMax. Errors: kServiceUnavailable, kTimeout: no
// answer. Source: containerd API, services/containers/v1.
#pragma once

#include "base/error.h"
#include "base/time.h"

#include <set>
#include <string>

namespace spillway::host {

inline constexpr Duration kContainerListMax = seconds(10);

/// Ids of the containers of the CRI plug-in's namespace.
Result<std::set<std::string>> list_containers(const std::string& socket);

}  // namespace spillway::host
