// Properties of systemd's units, as the slices of pods need them.
// Thread: any (pure). Source: systemd.resource-control(5), org.freedesktop.systemd1(5).
#pragma once

#include "host/cgroup/cgroup_limits.h"
#include "policy/cgroups/cgroup_name.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spillway::host {

struct UnitProperty {
  std::string name;
  std::variant<bool, std::uint64_t, std::string, std::vector<std::string>> value;

  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};

using UnitProperties = std::vector<UnitProperty>;

/// The properties that a slice is started with. Accounting makes systemd enable the controllers of its cgroup.
UnitProperties slice_properties(const cgroups::SliceUnit& unit, CgroupVersion version);

/// The limits in the form of systemd's properties, so that it does not undo them when it writes the cgroup's files
/// itself. It has properties neither for huge pages nor for the swap that a memory limit of version 1 leaves.
UnitProperties limit_properties(const CgroupLimits& limits, CgroupVersion version);

}  // namespace spillway::host
