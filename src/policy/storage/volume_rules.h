// The rules for a volume: free, bound, released when its claim is gone, and then kept. Nothing here removes data.
// Thread: any (pure). Source: Kubernetes docs, "Persistent Volumes", Binding, Reclaiming; docs/compat.
#pragma once

#include "api/object/storage.h"
#include "policy/storage/storage_write.h"

namespace spillway::storage {

/// The view of a volume and of the claim in its claimRef.
struct VolumeView {
  const api::PersistentVolume* volume = nullptr;
  /// Null: no claim has that name and uid.
  const api::PersistentVolumeClaim* claim = nullptr;
  /// The API server has just confirmed it, not only a cache.
  bool claim_is_gone = false;
};

struct VolumeStep {
  StorageStep step;
  /// The claim must be read from the API server, to make sure that it was deleted.
  bool ask_for_claim = false;

  friend bool operator==(const VolumeStep&, const VolumeStep&) = default;
};

VolumeStep decide_volume(const VolumeView& view);

}  // namespace spillway::storage
