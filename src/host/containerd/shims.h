// The shims of a containerd: processes that hold its containers and outlive it. containerd 1.6 forgets one whose
// sandbox it was making when the client of the call was killed: that shim has no container, and would stay for ever.
// Thread: any but the loop: reads /proc, and waits for ends. Source: containerd, runtime/v2.
#pragma once

#include "base/error.h"
#include "host/containerd/daemon_config.h"

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace spillway::host {

struct Shim {
  pid_t pid = 0;
  std::uint64_t started_ticks = 0;  // distinguishes it from a later process with the same number
  std::string container;            // id of the sandbox for which containerd started the shim

  friend bool operator==(const Shim&, const Shim&) = default;
};

/// Shims that name the socket of this containerd and the namespace of its CRI plug-in.
std::vector<Shim> find_shims(const DaemonPlaces& places);

/// Ends all shims, with the first processes of their containers.
void end_shims(const DaemonPlaces& places);

/// The shims that have no container. A container is recorded before its shim is started: read the shims first.
std::vector<Shim> without_container(std::vector<Shim> shims, const std::set<std::string>& containers);

struct ShimSweep {
  std::vector<Shim> doubted;  // no container at this sweep for the first time: containerd may be ending the shim
  std::vector<Shim> ended;    // no container at this sweep and the one before
};

/// Ends the shims that had no container at the last sweep either. Errors: containerd does not list its containers.
Result<ShimSweep> sweep_shims(const DaemonPlaces& places, const std::vector<Shim>& doubted_before);

}  // namespace spillway::host
