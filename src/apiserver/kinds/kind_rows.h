// The rows of all built-in kinds. Pure.
#pragma once

#include "apiserver/resource/resource_registry.h"

#include <vector>

namespace spillway::apiserver::kinds {

/// The rows in the order in which discovery shows them: the table of a ResourceRegistry.
std::vector<Resource> kind_rows();

}  // namespace spillway::apiserver::kinds
