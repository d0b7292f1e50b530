// What a container without a mount namespace of its own can have of its devices: it sees the host's files where they
// are, and no device cgroup keeps it from them.
// Thread: any. Source: agent/contract/device_ports.h; Kubernetes docs, "Device Plugins".
#pragma once

#include "agent/contract/device_ports.h"
#include "base/error.h"

namespace spillway::host {

/// Can the container find everything? Errors name what it cannot: a device or mount that is to appear under another
/// path or is not there, a CDI device. Nothing keeps it from writing to a mount that says readOnly. Annotations are for
/// runtimes that read them; this one does not.
Outcome check_device_access(const agent::DeviceGrant& grant);

}  // namespace spillway::host
