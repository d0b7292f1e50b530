// The version of Kubernetes whose behaviour Spillway follows. It is what `/version`, nodes, `--version`, user agents
// of probes and the first screen say, and "latest" of the Pod Security Standards. Thread: any (constants).
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

inline constexpr std::int32_t kFollowedMinor = 36;
inline constexpr std::string_view kFollowedRelease = "1.36";     // major and minor
inline constexpr std::string_view kFollowedVersion = "v1.36.0";  // as kubelets and API servers say it

}  // namespace spillway
