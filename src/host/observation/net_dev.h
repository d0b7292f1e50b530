// Counters of network interfaces from the text of /proc/net/dev.
// Pure: no I/O. Thread: any. Source: kernel document "proc.rst", /proc/net/dev; spec "Node agent", 10.2 (node.network).
#pragma once

#include "api/object/summary.h"
#include "base/error.h"
#include "base/time.h"

#include <string_view>

namespace spillway::host {

/// Sums all interfaces but loopback and the ends of containers (veth, docker, nerdctl). kInvalid: a malformed line.
Result<api::NetworkStats> parse_net_dev(std::string_view text, WallTime at);

}  // namespace spillway::host
