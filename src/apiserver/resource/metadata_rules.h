// What metadata may look like, for every kind: names, labels, annotations, finalizers, owner references; and what an
// update may not change. Thread: any (pure). Source: spec "API server contract", 7.1-7.3, 11.4.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/resource/resource_registry.h"

#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// Why the name breaks the rule, in upstream's words; none if it does not.
std::vector<std::string> name_problems(NameRule rule, std::string_view name);

/// Everything wrong with the metadata of a new object. Fields start with "metadata".
void validate_metadata(const Resource& resource, const api::Json& object, api::FieldErrors& errors);
/// And of a changed one.
void validate_metadata_update(const Resource& resource, const api::Json& object, const api::Json& old,
                              api::FieldErrors& errors);

}  // namespace spillway::apiserver
