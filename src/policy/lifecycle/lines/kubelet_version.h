// 1.7: kubelets that are too old for a step of the node lifecycle.
// Thread: any (pure functions). Source: spec "Node lifecycle", S5.7, S10.
#pragma once

#include <array>
#include <string_view>

namespace spillway::lifecycle {

/// A kubelet older than `minimum`, or of a version that does not parse as semantic version.
bool is_outdated_kubelet(std::string_view version, const std::array<int, 3>& minimum);

inline constexpr std::array<int, 3> kKubeletMarksPods = {1, 2, 0};
inline constexpr std::array<int, 3> kKubeletDeletesGracefully = {1, 1, 0};

}  // namespace spillway::lifecycle
