// Everything for which a node refuses its configuration at the start.
// Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <vector>

namespace spillway::agent {

/// The first error of each group of members; empty: the node starts. `effective`: of effective_config.
std::vector<Error> refusals_of(const api::Json& effective);

}  // namespace spillway::agent
