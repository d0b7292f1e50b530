#include "policy/cgroups/driver_choice.h"

namespace spillway::cgroups {

Result<CgroupDriver> choose_driver(const DriverFacts& facts) {
  if (!facts.configured) return facts.runtime.value_or(CgroupDriver::kCgroupfs);
  if (!facts.runtime || *facts.runtime == *facts.configured) return *facts.configured;
  return make_error(ErrorCode::kConflict,
                    "cgroupDriver is {}, but the container runtime at {} uses {}, so that no pod could start: set "
                    "cgroupDriver: {}, or change the runtime (containerd: SystemdCgroup = {})",
                    to_string(*facts.configured), facts.socket, to_string(*facts.runtime), to_string(*facts.runtime),
                    *facts.configured == CgroupDriver::kSystemd);
}

}  // namespace spillway::cgroups
