// memory.available of a node, read cheaply and often: held descriptors, no allocation, no open().
// Thread: loop. Source: spec "Wake-up sources", 4, 6; spec "Node agent", 10.4, 10.5.
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "host/kernel_file.h"
#include "host/node_slice.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::host {

/// limit - (usage - inactive_file). `inactive_file` is what memory.stat says, usage what the kernel charges now.
struct MemoryReading {
  Bytes available;
  Bytes usage;
  Bytes inactive_file;
};

/// The version 2 root's figure from /proc/meminfo: within about a mebibyte of memory.stat's at half its price.
/// kInvalid: a line is missing.
Result<MemoryReading> estimate_from_meminfo(std::string_view text);

class MemoryGauge {
 public:
  /// Errors name the file that cannot be opened.
  static Result<MemoryGauge> open(const NodeSlice& slice);

  /// As exact as a pass of statistics.
  Result<MemoryReading> read_exact();
  /// Usage as it is now, inactive_file as it was at the last exact reading.
  Result<MemoryReading> read_quick();

 private:
  MemoryGauge() = default;

  Result<MemoryReading> read_with(Bytes inactive_file) const;

  HeldFile usage_;  // absent in the root of version 2
  HeldFile stat_;
  HeldFile meminfo_;
  std::string_view inactive_key_;
  Bytes limit_;
  Bytes inactive_file_;
};

}  // namespace spillway::host
