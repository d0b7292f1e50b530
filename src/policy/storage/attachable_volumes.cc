#include "policy/storage/attachable_volumes.h"

#include <fmt/format.h>

namespace spillway::storage {

std::optional<AttachableVolume> attachable_of(const api::PersistentVolume& volume) {
  if (volume.csi_driver.empty() || volume.csi_handle.empty()) return std::nullopt;
  return AttachableVolume{volume.csi_driver, volume.csi_handle};
}

std::optional<AttachableVolume> attachable_of(const api::PersistentVolumeClaim& claim, const StorageLookup& lookup) {
  if (!claim.volume_name.empty()) {
    if (const VolumePtr volume = lookup.volume(claim.volume_name)) return attachable_of(*volume);
  }
  const std::string name = class_of(claim);
  const auto storage_class = name.empty() ? nullptr : lookup.storage_class(name);
  if (!storage_class || storage_class->provisioner.empty()) return std::nullopt;
  // No driver calls a volume so: a slash begins it.
  return AttachableVolume{storage_class->provisioner, fmt::format("/{}/{}", claim.metadata.ns, claim.metadata.name)};
}

}  // namespace spillway::storage
