// The extension of OpenAPI that names the kinds of a schema, or the kind of an operation. Thread: any. Source:
// Kubernetes docs, "The Kubernetes API", OpenAPI.
#pragma once

#include <string_view>

namespace spillway::apiserver {

inline constexpr std::string_view kGroupVersionKind = "x-kubernetes-group-version-kind";

}  // namespace spillway::apiserver
