// The extent of a write's change: none, only values, or the shape of the object as well.
// Thread: any (pure). Source: spec "API server contract", 7.6, 8.4.
#pragma once

#include "api/json/json.h"

#include <string>
#include <string_view>

namespace spillway::apiserver {

/// Equal but for the times in metadata.managedFields.
bool same_but_manager_times(const api::Json& a, const api::Json& b);

/// True if `manager` is the only recorded owner of `old`, by updates through `subresource`, and `object` differs from
/// it in values only: then it owns afterwards what it owned before.
bool is_repeated_update(const api::Json& object, const api::Json& old, std::string_view manager,
                        std::string_view subresource);

}  // namespace spillway::apiserver
