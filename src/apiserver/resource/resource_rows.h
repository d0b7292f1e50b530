// The rows of the table of resources. Thread: any (pure). Source: spec "API server contract", 2, 9.5, 22.2.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <vector>

namespace spillway::apiserver {

/// All rows in the order in which discovery shows them.
std::vector<Resource> resource_rows(KindTable hooks);

}  // namespace spillway::apiserver
