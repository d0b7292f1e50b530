// Actions as members of an event of a scenario file. Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "sim/scenario/actions.h"

#include <string>
#include <utility>

namespace spillway::sim {

/// "partition" and what follows it.
std::pair<std::string, api::Json> action_json(const Action& action);

/// "replicaSet" of ReplicaSet.
std::string member_of_kind(const std::string& kind);

/// "500Mi" where it is a whole number of them, else bytes.
std::string bytes_text(Bytes bytes);

}  // namespace spillway::sim
