// Keeps the needed parts of this process in memory when memory is short. Thread: loop. Source: mlock(2), madvise(2),
// proc(5) smaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway::host {

enum class MemoryLock { kLocked, kNotAllowed };

/// Locks the memory that this process has touched, and makes the OOM killer prefer other processes; as far as its
/// rights allow.
MemoryLock protect_process();

/// Frees the pages of program and libraries that only the start needed. Pages in use are loaded again by themselves,
/// and are locked as before.
void give_back_start_up_pages();

struct MemoryRange {
  std::uintptr_t begin = 0;
  std::size_t size = 0;

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Mappings of `program` and of shared libraries that no process can write to and that have no page of their own
/// (relocations do), in the text of /proc/PID/smaps. Lines that cannot be parsed are left out.
std::vector<MemoryRange> clean_code_ranges(std::string_view smaps, std::string_view program);

}  // namespace spillway::host
