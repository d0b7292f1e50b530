// The statistics files of one cgroup, kept open between passes: opening costs as much again as reading.
// Thread: loop. A cgroup that was removed and made again is noticed by the old files' failing. Source: spec "Wake-up
// sources", 4.
#pragma once

#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "host/cgroup/cpu_stat.h"
#include "host/cgroup/memory_stat.h"
#include "host/kernel/kernel_file.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::host {

class CgroupStats {
 public:
  /// Never fails: files that cannot be held (none left to open) are opened for each reading.
  explicit CgroupStats(const CgroupDir& cgroup);

  Result<CgroupMemory> memory(const CgroupDir& cgroup) const;
  Result<CpuUsage> cpu(const CgroupDir& cgroup) const;
  /// Processes of this cgroup alone. Opened each time: version 1 answers a held descriptor from a list it made before.
  static Result<std::uint64_t> processes(const CgroupDir& cgroup);

  /// The files are those of a cgroup that has been removed.
  bool is_stale() const;

 private:
  Result<std::string> read(const HeldFile& held, const CgroupDir& cgroup, Controller controller,
                           const std::string& file) const;

  bool v1_;
  HeldFile usage_;
  HeldFile stat_;
  HeldFile limit_;
  HeldFile cpu_;
  std::optional<std::string> use_hierarchy_;  // memory.use_hierarchy, which never changes
};

}  // namespace spillway::host
