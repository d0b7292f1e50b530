// Memory figures of one cgroup, from the text of its files, as the Summary API defines them.
// Pure: no I/O. Thread: any. Source: spec "Node agent", 10.4, 10.5; vectors node-agent/memory_stats.
#pragma once

#include "api/object/summary.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::host {

/// All in bytes or counts. Unsigned as upstream: what is computed from them wraps rather than clamps.
struct CgroupMemory {
  std::uint64_t usage_bytes = 0;
  std::uint64_t working_set_bytes = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t inactive_file_bytes = 0;
  std::uint64_t active_file_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::uint64_t page_faults = 0;
  std::uint64_t major_page_faults = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t swap_limit_bytes = 0;
  std::optional<std::uint64_t> refaulted_file_pages = {};  // nullopt: the kernel does not count them

  friend bool operator==(const CgroupMemory&, const CgroupMemory&) = default;
};

/// Contents of the files that exist.
struct MemoryFiles {
  std::optional<std::string> usage;          // memory.usage_in_bytes, memory.current
  std::optional<std::string> stat;           // memory.stat
  std::optional<std::string> limit;          // memory.limit_in_bytes, memory.max
  std::optional<std::string> use_hierarchy;  // version 1
  std::optional<std::string> swap_usage;     // memory.swap.current
  std::optional<std::string> swap_limit;     // memory.memsw.limit_in_bytes, memory.swap.max
};

/// Figures of /proc/meminfo in bytes; absent lines are absent.
struct MemInfo {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> swap_total_bytes;
  std::optional<std::uint64_t> swap_free_bytes;

  friend bool operator==(const MemInfo&, const MemInfo&) = default;
};

/// kInvalid: a line that is no "Name: number kB".
Result<MemInfo> parse_meminfo(std::string_view text);

/// `machine` is given for the root cgroup alone, whose limits are the machine's. kNotFound: a file that must exist does
/// not; kInvalid: a malformed line. Keys that are absent from memory.stat, and negative ones, count as 0, and so does
/// everything but the limits where memory.stat itself is absent, or malformed in the root of version 2.
Result<CgroupMemory> compute_memory(CgroupVersion version, const MemoryFiles& files, const MemInfo* machine);

/// limit - used if there is a limit (up to 2^62), without clamping; else absent.
std::optional<std::uint64_t> available_below(std::uint64_t limit_bytes, std::uint64_t used_bytes);

/// The figures of a Summary.
api::MemoryStats to_memory_stats(const CgroupMemory& memory, WallTime at);

/// The page cache of a pod's cgroup.
api::FileCache to_file_cache(const CgroupMemory& memory);

/// Available: below the swap limit, without clamping, as upstream; absent without a limit.
api::SwapStats to_swap_stats(const CgroupMemory& memory, WallTime at);

/// Processes that the kernel's OOM killer has taken: the line "oom_kill <number>" of memory.events (version 2) or
/// memory.oom_control (version 1); nullopt if there is none.
std::optional<std::uint64_t> parse_oom_kills(std::string_view text);
std::optional<std::uint64_t> read_oom_kills(const CgroupDir& cgroup);

/// Reads the files of `cgroup` and computes; an absent or malformed memory.stat is an error.
Result<CgroupMemory> read_memory(const CgroupDir& cgroup, const MemInfo* machine);

}  // namespace spillway::host
