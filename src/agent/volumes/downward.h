// The downward API: fields of its metadata, limits and requests. Thread: any (pure). Source: Kubernetes docs, "Downward
// API"; spec "Pod lifecycle", 6.7, 7.5.
#pragma once

#include "api/object/pod.h"
#include "base/error.h"

#include <string>
#include <string_view>

namespace spillway::agent {

/// "metadata.name", "metadata.labels", "metadata.annotations['key']", … kInvalid, in upstream's words: no such field,
/// or a key that cannot be one.
Result<std::string> metadata_field(const api::Pod& pod, std::string_view path);

/// Containers whose unset limits default to the node's resources; those of the others are 0.
enum class LimitDefaults { kRegularContainers, kAllContainers };

/// A limit or request in units of the divisor, rounded up. kInvalid, in upstream's words: no such container or
/// resource.
Result<std::string> resource_field(const api::Pod& pod, const api::ResourceFieldSelector& selector,
                                   const api::ResourceList& allocatable, LimitDefaults defaults);

}  // namespace spillway::agent
