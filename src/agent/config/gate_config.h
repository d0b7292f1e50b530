// The members authentication and authorization of a KubeletConfiguration.
// Thread: any (pure). Source: Kubernetes docs, "Kubelet authentication/authorization", "Kubelet Configuration
// (v1beta1)".
#pragma once

#include "agent/contract/gate_settings.h"
#include "api/json/json.h"
#include "base/error.h"

namespace spillway::agent {

/// `effective`: checked, with defaults. kInvalid: an unknown member (the error suggests the nearest name), a malformed
/// value, an unknown mode.
Result<GateSettings> gate_of(const api::Json& effective);

/// The node answers for files of its own logs.
bool serves_log_files(const api::Json& effective);

/// The node answers queries for its own logs. kInvalid: enableSystemLogQuery without what it needs, in upstream's
/// words.
Result<bool> answers_log_queries(const api::Json& effective);

}  // namespace spillway::agent
