// What of this process stays in memory when memory is short. Thread: loop. Source: mlock(2), madvise(2), proc(5) smaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace spillway::host {

enum class MemoryLock { kLocked, kNotAllowed };

/// Keeps what this process has touched of its memory in memory, and tells the OOM killer to look elsewhere; as far as
/// the rights go.
MemoryLock protect_process();

/// Gives back the pages of program and libraries that only the start needed. Those in use come back by themselves, and
/// are locked as before.
void give_back_start_up_pages();

struct MemoryRange {
  std::uintptr_t begin = 0;
  std::size_t size = 0;

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

/// Mappings of `program` and of shared libraries that nobody can write to and that hold no page of their own
/// (relocations do), in the text of /proc/PID/smaps. What cannot be understood is left out.
std::vector<MemoryRange> clean_code_ranges(std::string_view smaps, std::string_view program);

}  // namespace spillway::host
