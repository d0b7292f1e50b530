// RFC 6902 with the habits of the Kubernetes API server: atomic, at most 10,000 operations, index -1 counts from the
// end, `test` of null passes on a missing member, the root is not a target.
// Thread: any (pure). Source: RFC 6901, RFC 6902; spec "API server contract", 10.1.
#pragma once

#include "api/json/json.h"
#include "base/error.h"

namespace spillway::api {

/// kBadRequest: the patch is no list. kInvalid: an operation failed; names its index. kRequestEntityTooLarge: more than
/// 10,000 operations, or operations that copy more than 3 MiB or touch more than 10 million values. The result is never
/// nested deeper than 1,000.
Result<Json> json_patch(const Json& original, const Json& patch);

}  // namespace spillway::api
