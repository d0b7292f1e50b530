// The mark of a store into which somebody is copying, or has not finished copying: no server starts on it.
// Thread: any. Source: spec "etcd as the store", 11.7.
#pragma once

#include <string_view>

namespace spillway::store {

inline constexpr std::string_view kIncompleteCopyKey = "/registry/spillway.dev/incomplete-copy";

/// What belongs to the store's own affairs and is not copied.
inline constexpr std::string_view kOwnAffairs = "/registry/spillway.dev/";

}  // namespace spillway::store
