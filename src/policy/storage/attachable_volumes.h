// Volumes that CSI drivers attach to nodes, as what a node can hold of them counts them. Thread: any (pure).
// Source: Kubernetes docs, "Node-specific Volume Limits".
#pragma once

#include "api/object/storage.h"
#include "policy/storage/pod_claims.h"

#include <compare>
#include <optional>
#include <string>

namespace spillway::storage {

struct AttachableVolume {
  std::string driver;
  /// The driver's own name for the volume: one volume counts once, however many claims and pods use it.
  std::string handle;

  friend auto operator<=>(const AttachableVolume&, const AttachableVolume&) = default;
};

/// nullopt: no CSI driver attaches it.
std::optional<AttachableVolume> attachable_of(const api::PersistentVolume& volume);

/// For a claim without a volume, the volume that the provisioner of its class will make, under a provisional name.
std::optional<AttachableVolume> attachable_of(const api::PersistentVolumeClaim& claim, const StorageLookup& lookup);

}  // namespace spillway::storage
