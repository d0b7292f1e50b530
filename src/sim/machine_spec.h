// A simulated machine as data. Thread: any (values).
#pragma once

#include "api/object/meta.h"
#include "base/bytes.h"

#include <cstdint>
#include <string>

namespace spillway::sim {

/// One machine of a cluster that a document or an import describes.
struct MachineSpec {
  std::string name;
  api::StringMap labels;
  Bytes memory;
  std::int64_t cpu_milli = 4000;
  Bytes disk = gibibytes(100);
  Bytes swap = {};
};

}  // namespace spillway::sim
