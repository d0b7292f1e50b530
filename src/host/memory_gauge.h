// Available memory of a cgroup with a limit, read cheaply and often: held descriptors, no allocation, no open().
// Thread: loop. Source: spec "Wake-up sources", 4, 6; spec "Node agent", 10.4, 10.5.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "host/cgroup.h"
#include "host/kernel_file.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::host {

/// limit - (usage - inactive_file). `inactive_file` is what memory.stat says, usage what the kernel charges now.
struct MemoryReading {
  Bytes available;
  Bytes usage;
  Bytes inactive_file;
  std::optional<Bytes> mem_available;  // MemAvailable, where the gauge reads /proc/meminfo
};

/// The version 2 root's figure from /proc/meminfo: within about a mebibyte of memory.stat's at half its price.
/// kInvalid: a line is missing.
Result<MemoryReading> estimate_from_meminfo(std::string_view text);

class MemoryGauge {
 public:
  /// Errors name the file that cannot be opened. A root of version 2 has no usage of its own: there the gauge reads
  /// /proc/meminfo.
  static Result<MemoryGauge> open(const CgroupDir& cgroup, Bytes limit);

  /// kNotFound once the cgroup is gone.
  Result<MemoryReading> read() const;

 private:
  MemoryGauge() = default;

  HeldFile usage_;
  HeldFile stat_;
  HeldFile meminfo_;
  std::string_view inactive_key_;
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
