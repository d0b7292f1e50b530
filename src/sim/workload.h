// The workloads scenarios create, as documents.
// Thread: any.
#pragma once

#include "api/json/json.h"

#include <cstdint>
#include <string>

namespace spillway::sim {

/// A ReplicaSet that selects its pods by the label app=NAME.
api::Json replica_set(const std::string& name, std::int64_t replicas, api::Json pod_spec);
api::Json daemon_set(const std::string& name, api::Json pod_spec);

}  // namespace spillway::sim
