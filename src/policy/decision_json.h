// Decisions as JSON: one form for journals, for what a node or controller answers about itself, and for `-o json`.
// Thread: any (pure). Invariant: what is written reads back equal. Unknown members are ignored, unknown words are
// errors.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/reason.h"

#include <vector>

namespace spillway::policy {

api::Json to_json(const std::vector<Fact>& facts);
api::Json to_json(const Reason& reason);
api::Json to_json(const Subject& subject);
api::Json to_json(const Decision& decision);

/// Parses facts. kInvalid: the missing or malformed member.
Result<std::vector<Fact>> facts_from_json(const api::Json* document);
Result<Reason> reason_from_json(const api::Json& document);
Result<Decision> decision_from_json(const api::Json& document);

}  // namespace spillway::policy
