// Whether a change of a pod is one that its namespace's standard has a say in.
// Thread: any (pure). Source: Kubernetes docs, "Pod Security Admission"; KEP-2579, "Updates".
#pragma once

#include "api/json/json.h"

namespace spillway::podsecurity {

/// True if another image, a container more or less, a new container for debugging or another seccomp annotation of a
/// container would come with it. Everything else a pod may change (metadata, tolerations, deadlines, containers for
/// debugging that go) is not judged again: a pod that came before the standard is not stuck.
bool is_significant_change(const api::Json& pod, const api::Json& old);

}  // namespace spillway::podsecurity
