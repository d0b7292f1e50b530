// The flow schemas and priority levels of every server: upstream's, under the same names. Thread: any (pure).
// Source: Kubernetes docs, "API Priority and Fairness", suggested and mandatory configuration objects; spec "API server
// at scale", 6.1, 6.7.
#pragma once

#include "policy/flow/schema.h"

namespace spillway::flow {

/// In order. Anonymous clients are of catch-all, not of global-default.
Configuration built_in_configuration();

}  // namespace spillway::flow
