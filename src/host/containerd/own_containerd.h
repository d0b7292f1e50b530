// A containerd of `spillway up`, ready for pods: started or taken over, with the image of its sandboxes and a network.
// Thread: any but the loop: waits, as daemon.h says.
#pragma once

#include "base/error.h"
#include "base/time.h"
#include "host/containerd/daemon.h"

#include <atomic>
#include <string>

namespace spillway::host {

/// Writes the fallback network into the directory of CNI configurations, unless that has one. True: it was written.
Result<bool> write_fallback_network(const DaemonPlaces& places, const std::string& directory);

/// `settings.sandbox_image` is set here. `now`: the lease of what is stored ends an hour later. Errors as
/// start_daemon(); a containerd that was started and cannot be used is ended.
Result<Daemon> start_own_containerd(const DaemonPlaces& places, DaemonSettings settings, WallTime now,
                                    const std::atomic<bool>& cancelled);

}  // namespace spillway::host
