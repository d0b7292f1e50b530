// The volume behind a pod's claim on this node. Claim and volume have to name each other: one reference alone is not
// enough. Thread: any (pure). Source: spec "Pod lifecycle", 7.6; Kubernetes docs, "Persistent Volumes".
#pragma once

#include "agent/contract/volume_ports.h"
#include "api/object/pod.h"
#include "api/object/storage.h"
#include "base/error.h"

#include <optional>
#include <string>

namespace spillway::agent {

/// The claim that the volume of a pod names; nullopt: it is of another kind.
std::optional<std::string> claim_name_of(const api::Volume& volume);

/// The name of the volume that a claim is bound to.
Result<std::string> volume_named_by(const api::PersistentVolumeClaim& claim);
/// kConflict: the volume is bound to another claim, or to none.
Outcome check_claimed(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim);
/// kInvalid: the PersistentVolume cannot be mounted as a file system for this volume of a pod.
Outcome check_volume_mode(const api::PersistentVolume& volume, const std::string& pod_volume);
/// Checks the node's labels against the volume's node affinity.
Outcome check_node(const api::PersistentVolume& volume, const api::ObjectMeta& node);

/// The request to the machine that mounts the volume. kInvalid: its kind of volume is not supported.
Result<VolumeSetup> setup_of_claimed(const api::Pod& pod, const std::string& pod_volume,
                                     const api::PersistentVolume& volume);

}  // namespace spillway::agent
