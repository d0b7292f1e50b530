// The workloads scenarios create, as documents.
// Thread: any.
#pragma once

#include "api/json/json.h"

#include <cstdint>
#include <string>

namespace spillway::sim {

/// A ReplicaSet that selects its pods by the label app=NAME.
api::Json replica_set(const std::string& name, std::int64_t replicas, api::Json pod_spec);
/// A Deployment with rolling updates; `max_unavailable`, `max_surge`: a number, a text like "25%", or null.
api::Json deployment(const std::string& name, std::int64_t replicas, api::Json pod_spec,
                     const api::Json& max_unavailable, const api::Json& max_surge);
api::Json daemon_set(const std::string& name, api::Json pod_spec);

}  // namespace spillway::sim
