// The kernel's table of connections, over netlink. Only UDP entries are read. Thread: any; waits for the kernel.
// Source: linux/netfilter/nfnetlink_conntrack.h.
#pragma once

#include "base/error.h"
#include "policy/network/stale_flows.h"

#include <cstddef>

namespace spillway::host {

/// Returns the number of deleted entries. Bounds: a million entries are read. An entry that ends meanwhile is no error.
Result<std::size_t> delete_stale_flows(const network::FlowCheck& check);

}  // namespace spillway::host
