// Checks and opens the devices of a container. No device cgroup keeps one without a mount namespace of its own from
// others. Thread: any. Source: agent/contract/device_ports.h; Kubernetes docs, "Device Plugins".
#pragma once

#include "agent/contract/device_ports.h"
#include "base/error.h"

namespace spillway::host {

/// Checks that the container can use its whole grant. Errors name what it cannot use: a device or mount that is to
/// appear under another path or does not exist, a CDI device. A readOnly mount is not enforced. Annotations are for
/// runtimes that read them; this one does not.
/// kHost: the container sees the host's files where they are. kOwn: it has a view of its own, where mounts may be at
/// any path.
enum class DeviceView { kHost, kOwn };

Outcome check_device_access(const agent::DeviceGrant& grant, DeviceView view = DeviceView::kHost);

}  // namespace spillway::host
