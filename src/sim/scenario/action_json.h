// Actions as members of an event of a scenario file. Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "sim/scenario/actions.h"

#include <string>
#include <utility>

namespace spillway::sim {

/// An action as a document: its name ("partition") and its members.
std::pair<std::string, api::Json> action_json(const Action& action);

/// "replicaSet" of ReplicaSet.
std::string member_of_kind(const std::string& kind);

/// "500Mi" if the amount is a whole number of Mi, else the number of bytes.
std::string bytes_text(Bytes bytes);

}  // namespace spillway::sim
