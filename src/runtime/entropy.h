// The source of random numbers of the running program. Values that must differ from those of other processes
// (identities of leaders, uids, names made from a prefix) are seeded here; a clock is not enough: two processes may
// start in the same microsecond. Thread: any.
#pragma once

#include <cstdint>

namespace spillway::runtime {

/// 64 bits of the kernel's that no other process gets. Not for keys. Does not wait: a kernel that has just booted and
/// has none yet is replaced by what differs between processes of a machine.
std::uint64_t entropy();

}  // namespace spillway::runtime
