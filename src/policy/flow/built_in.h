// The flow schemas and priority levels of every server: upstream's, under the same names. Thread: any (pure).
// Source: Kubernetes docs, "API Priority and Fairness", suggested and mandatory configuration objects; spec "API server
// at scale", 6.1, 6.7.
#pragma once

#include "policy/flow/schema.h"

namespace spillway::flow {

/// The built-in schemas, in order, and levels. Anonymous clients match catch-all, not global-default.
Configuration built_in_configuration();

}  // namespace spillway::flow
