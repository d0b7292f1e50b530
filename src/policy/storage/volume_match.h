// Chooses the volume for a claim. Thread: any (pure). Source: Kubernetes docs, "Persistent Volumes", Binding, Reserving
// a PersistentVolume; "Storage Classes", Volume Binding Mode.
#pragma once

#include "api/object/storage.h"
#include "policy/storage/storage_write.h"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::storage {

using VolumePtr = std::shared_ptr<const api::PersistentVolume>;

/// The class by the former annotation, else by the field. A claim that names none has an empty class.
std::string class_of(const api::PersistentVolumeClaim& claim);
std::string class_of(const api::PersistentVolume& volume);
/// True if the claim does not mention a class, not even the empty one.
bool names_no_class(const api::PersistentVolumeClaim& claim);

/// The volume's claimRef names the claim, with its uid or without any.
bool is_reserved_for(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim);
/// True if the volume is bound to this claim, by name and uid.
bool is_bound_to(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim);

/// The reason why a volume that the claim names cannot be bound, in upstream's words; nullopt: it can.
std::optional<std::string> mismatch_of(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim);

/// The volume is reached from this node.
bool is_reached_from(const api::PersistentVolume& volume, const api::ObjectMeta& node);

struct MatchRules {
  /// True if the volume can be reached from the pod's node; empty: every volume can.
  std::function<bool(const api::PersistentVolume& volume)> reached = {};
  /// Bound when a pod is placed: without a place only a volume that is reserved for the claim.
  bool delayed = false;
  /// Volumes that other claims get in the same decision.
  const std::set<std::string>* taken = nullptr;
};

/// The volume reserved for the claim, else of those with the fewest access modes that suffice the smallest, of equals
/// the first by name; nullptr: none.
VolumePtr find_volume(const api::PersistentVolumeClaim& claim, const std::vector<VolumePtr>& volumes,
                      const MatchRules& rules);

/// The write that reserves the volume for the claim; nullopt: it is.
std::optional<StorageWrite> reserve(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim);

/// {"metadata": {"uid": …, "resourceVersion": …}}: nothing is written over what others wrote meanwhile.
api::Json guarded_patch(const api::ObjectMeta& meta);

}  // namespace spillway::storage
