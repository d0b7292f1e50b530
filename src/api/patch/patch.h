// The three patch formats of the API as pure functions over untyped documents: original and patch in, result out. The
// caller decodes the result against its type afterwards (api/schema/typed.h); nothing is changed on an error.
// Thread: any (pure). Source: RFC 6902, RFC 7386, Kubernetes docs "Update API Objects in Place Using kubectl patch";
// spec "API server contract", 10.
#pragma once

#include "api/json/json.h"
#include "api/schema/schema.h"
#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::api {

enum class PatchType : std::uint8_t { kJson, kMerge, kStrategicMerge, kApply };

/// The type by Content-Type, parameters ignored: "application/merge-patch+json; charset=utf-8". nullopt: not a patch
/// type.
std::optional<PatchType> parse_patch_type(std::string_view content_type);
/// The Content-Type to send.
std::string_view content_type_of(PatchType type);

/// kJson: kBadRequest if the patch is no list of operations, kInvalid if one of them fails.
/// kMerge, kStrategicMerge: kBadRequest for a malformed patch or directive.
/// kApply is not a function of the object alone (api/patch/apply.h): kUnsupportedMediaType.
Result<Json> apply_patch(const Type& type, const Json& original, PatchType patch_type, const Json& patch);

/// RFC 7386: null deletes, lists are replaced.
Json merge_patch(const Json& original, const Json& patch);

}  // namespace spillway::api
