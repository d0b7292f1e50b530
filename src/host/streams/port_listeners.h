// Finds out if a port of this machine's network belongs to processes of one pod alone.
// Thread: any that may wait (a walk of /proc). Bounds: kProcessesMax processes, kDescriptorsMax of their descriptors.
// Source: kernel documents "proc_net_tcp.rst", "proc.rst"; spec "Pod lifecycle", 11.6.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::host {

inline constexpr std::size_t kProcessesMax = 4096;
inline constexpr std::size_t kDescriptorsMax = 65'536;

/// Inodes of the sockets in `table` (/proc/net/tcp, /proc/net/tcp6) that a connection to `port` of 127.0.0.1 or ::1
/// could reach. Listening sockets are first in it; the rest is not read.
std::set<std::uint64_t> parse_loopback_listeners(std::string_view table, std::uint16_t port);

/// Every socket of this thread's network that listens on `port` for the machine itself is held by one of `processes`
/// whose cgroup has a part named `cgroup`. kNotFound: none listens, or others do.
Outcome check_listeners(std::uint16_t port, const std::vector<pid_t>& processes, std::string_view cgroup);

}  // namespace spillway::host
