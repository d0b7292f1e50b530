// CPUs and NUMA nodes of this machine, as the kernel describes them below /sys/devices/system.
// Thread: any. Source: kernel documents "ABI/stable/sysfs-devices-system-cpu", "ABI/stable/sysfs-devices-node".
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "policy/admission/cpu_topology.h"

#include <optional>
#include <string>

namespace spillway::host {

struct CpuLayout {
  admission::CpuTopology cpus;  // online CPUs
  admission::NumaLayout numa;
};

/// `system`: "/sys/devices/system". A machine without information about NUMA nodes is one node with `memory`. `share`:
/// the part of the machine; the memory of the nodes is counted in proportion, without huge pages. kInvalid, kNotFound:
/// the CPUs cannot be read.
Result<CpuLayout> read_cpu_layout(const std::string& system, Bytes memory, std::optional<Bytes> share);

}  // namespace spillway::host
