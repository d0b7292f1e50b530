// The mark of a store into which a copy is being written, or was not finished: no server starts on it.
// Thread: any. Source: spec "etcd as the store", 11.7.
#pragma once

#include <string_view>

namespace spillway::store {

inline constexpr std::string_view kIncompleteCopyKey = "/registry/spillway.dev/incomplete-copy";

/// Keys of the store's own records, such as leases and addresses of servers, which are not copied.
inline constexpr std::string_view kOwnAffairs = "/registry/spillway.dev/";

}  // namespace spillway::store
