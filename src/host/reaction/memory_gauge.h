// Available memory of a cgroup with a limit, or of the machine, read cheaply and often: held descriptors, no
// allocation, no open().
// Thread: any, several at a time, since a reading changes nothing in the gauge; those of the reaction are read on its
// own thread. Source: spec "Wake-up sources", 4, 6; spec "Node agent", 10.4, 10.5; kernel documents "cgroup-v2.rst",
// "proc.rst" (MemAvailable).
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "host/cgroup/cgroup.h"
#include "host/kernel/kernel_file.h"
#include "policy/eviction/signal.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::host {

/// `available` = limit - (usage - inactive_file). `inactive_file` is from memory.stat, usage is the kernel's present
/// charge. The other members only if they were requested and the kernel has them.
struct MemoryReading {
  Bytes available;
  Bytes usage;
  Bytes inactive_file;
  Bytes limit;
  /// The memory that can be taken without swapping: MemAvailable of the machine; for a cgroup its unused memory, its
  /// page cache and its reclaimable slab.
  std::optional<Bytes> mem_available = {};
  /// The memory that can be swapped out besides. Version 1, where swap has no limit of its own: minus what has been
  /// swapped out.
  std::optional<Bytes> swap_left = {};

  /// The available memory by the estimator; nullopt: its figures were not read.
  std::optional<Bytes> left_by(eviction::MemoryEstimator by) const noexcept;
};

/// The extent of a reading. kEverything costs a walk over memory.stat and, of a cgroup, two files more.
enum class Figures { kWorkingSet, kEverything };

/// The version 2 root's figure from /proc/meminfo: within about a mebibyte of memory.stat's at half its price.
/// kInvalid: a line is missing.
Result<MemoryReading> estimate_from_meminfo(std::string_view text);

class MemoryGauge {
 public:
  /// Errors name the file that cannot be opened. A root of version 2 has no usage of its own: there the gauge reads
  /// /proc/meminfo.
  static Result<MemoryGauge> open(const CgroupDir& cgroup, Bytes limit);
  /// Opens a cgroup whose own limit may be changed while it is read: the lower limit counts.
  static Result<MemoryGauge> open_with_own_limit(const CgroupDir& cgroup, Bytes limit);

  /// kNotFound: the cgroup was removed.
  Result<MemoryReading> read(Figures figures = Figures::kWorkingSet) const;

 private:
  MemoryGauge() = default;

  void read_beside(MemoryReading& reading, std::string_view stat) const;
  std::optional<Bytes> swap_left_of_cgroup(Bytes limit, std::string_view stat) const;

  bool v1_ = false;
  bool machine_ = false;  // the root of the hierarchy
  HeldFile usage_;        // none: a root of version 2
  HeldFile stat_;
  HeldFile meminfo_;
  HeldFile own_limit_;  // none: `limit_` alone
  HeldFile swap_;       // swap usage of a cgroup of version 2
  HeldFile swap_max_;   // version 1: limit of memory and swap together
  Bytes limit_;
};

/// The root of version 2 by its own memory.stat: exact, at twice the price.
class RootGauge {
 public:
  static Result<RootGauge> open(const CgroupDir& root, Bytes machine_memory);
  Result<MemoryReading> read() const;

 private:
  RootGauge() = default;

  HeldFile stat_;
  Bytes memory_;
};

}  // namespace spillway::host
