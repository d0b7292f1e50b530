// The number of memory allocations of this process so far: operator new is counted. Thread: any.
#pragma once

#include <cstdint>

namespace spillway::bench {

std::uint64_t allocations();

}  // namespace spillway::bench
