#include "sim/history/run_history.h"

namespace spillway::sim {

std::int32_t NodeState::packed() const {
  std::int32_t bits = 0;
  int place = 0;
  for (const Status status : {ready, memory_pressure, disk_pressure, pid_pressure}) {
    bits |= static_cast<std::int32_t>(status) << place;
    place += 2;
  }
  bits |= (tainted ? 1 : 0) << 8;
  bits |= (unschedulable ? 1 : 0) << 9;
  return bits | static_cast<std::int32_t>(machine) << 10;
}

}  // namespace spillway::sim
