// The memory of this process as its kernel and its allocator count it. The parsers are pure. Thread: any that may wait
// some milliseconds: the kernel walks the page tables. Source: proc(5), status and smaps; mallinfo(3), mallinfo2().
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway::host {

/// Bytes; 0 where the kernel or the C library does not report it.
struct OwnMemory {
  std::uint64_t resident = 0;       // all pages in memory
  std::uint64_t resident_most = 0;  // since the start
  std::uint64_t of_files = 0;       // resident pages of program and libraries
  std::uint64_t threads = 0;
  std::uint64_t stacks = 0;            // resident pages of stacks
  std::uint64_t stack_count = 0;       // threads and fibers that have one
  std::uint64_t allocator_used = 0;    // blocks in use, small and large
  std::uint64_t allocator_free = 0;    // freed blocks that the allocator keeps
  std::uint64_t allocator_mapped = 0;  // large blocks that are mapped on their own, a part of allocator_used
};

/// Takes VmRSS, VmHWM, RssFile and Threads from the text of /proc/PID/status. Lines that cannot be parsed are left out.
void parse_status(std::string_view text, OwnMemory& memory);

/// Sums up the stacks in the text of /proc/PID/smaps: the one of the first thread, and private mappings without a file
/// of exactly `stack_bytes`, with or without their guard page.
void parse_stacks(std::string_view smaps, std::uint64_t stack_bytes, OwnMemory& memory);

OwnMemory read_own_memory();

}  // namespace spillway::host
