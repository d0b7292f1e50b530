// The name of an image, taken apart: "registry:5000/team/app:v1@sha256:…".
// Thread: any (pure). Source: the grammar of image references (OCI distribution), as Kubernetes' defaults read it;
// vectors api/defaulting_pod.
#pragma once

#include <string_view>

namespace spillway::apiserver::kinds {

/// The tag of an image; "latest" if it has neither tag nor digest, empty if it has a digest alone or is malformed.
std::string_view image_tag(std::string_view image);

}  // namespace spillway::apiserver::kinds
