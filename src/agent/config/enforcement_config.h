// Parses the members of a KubeletConfiguration that configure enforceNodeAllocatable.
// Thread: any (pure). Source: Kubernetes docs, "Reserve Compute Resources for System Daemons", "Kubelet Configuration
// (v1beta1)".
#pragma once

#include "agent/contract/enforcement_settings.h"
#include "api/json/json.h"
#include "base/error.h"

namespace spillway::agent {

/// `effective`: checked, with defaults. kInvalid, in upstream's words: an unknown enforcement, one given twice, or
/// beside one that excludes it; a cgroup that is missing, or cannot be together with reservedSystemCPUs.
Result<EnforcementSettings> enforcement_of(const api::Json& effective);

}  // namespace spillway::agent
