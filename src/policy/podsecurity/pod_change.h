// Selects the changes of a pod that are evaluated against its namespace's standard.
// Thread: any (pure). Source: Kubernetes docs, "Pod Security Admission"; KEP-2579, "Updates".
#pragma once

#include "api/json/json.h"

namespace spillway::podsecurity {

/// True if another image, a container more or less, a new container for debugging or another seccomp annotation of a
/// container is part of the change. Other changes (metadata, tolerations, deadlines, removed containers for debugging)
/// are not evaluated again, so that a pod older than the standard can still be changed.
bool is_significant_change(const api::Json& pod, const api::Json& old);

}  // namespace spillway::podsecurity
