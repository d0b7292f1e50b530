// Objects of requests and answers as the audit log shows them.
// Thread: any (pure).
#pragma once

#include "api/json/json.h"
#include "base/error.h"

#include <string_view>

namespace spillway::apiserver {

/// The object of a body, JSON or protobuf. kRequestEntityTooLarge: more than can be parsed at a stretch; another error:
/// the body has no object.
Result<api::Json> audited_object(std::string_view body);

/// The object without metadata.managedFields, also of the items of a list.
api::Json without_managed_fields(api::Json object);

}  // namespace spillway::apiserver
