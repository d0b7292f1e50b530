// Units of ownership of a custom object under server-side apply, from its schema: objects by their members, lists of
// type map by their keys, sets by their values, all else as a whole. Thread: any (pure). Source: Kubernetes docs,
// "Server-Side Apply", merge strategy, custom resources.
#pragma once

#include "api/schema/derived_types.h"
#include "policy/structural/structural_schema.h"

#include <string>

namespace spillway::apiserver {

/// Made in `types`, with all that it is made of.
const api::Type& field_type(const structural::Schema& schema, std::string api_version, std::string kind,
                            api::DerivedTypes& types);

}  // namespace spillway::apiserver
