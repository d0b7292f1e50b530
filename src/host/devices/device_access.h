// Checks and opens the devices of a container. No device cgroup keeps one without a mount namespace of its own from
// others. Thread: any. Source: agent/contract/device_ports.h; Kubernetes docs, "Device Plugins".
#pragma once

#include "agent/contract/device_ports.h"
#include "base/error.h"

namespace spillway::host {

/// Can the container find everything? Errors name what it cannot: a device or mount that is to appear under another
/// path or is not there, a CDI device. Nothing keeps it from writing to a mount that says readOnly. Annotations are for
/// runtimes that read them; this one does not.
/// kHost: the container sees the host's files where they are. kOwn: it has a view of its own, where everything can be
/// mounted anywhere.
enum class DeviceView { kHost, kOwn };

Outcome check_device_access(const agent::DeviceGrant& grant, DeviceView view = DeviceView::kHost);

}  // namespace spillway::host
