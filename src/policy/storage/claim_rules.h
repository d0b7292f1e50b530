// The rules for a claim: bound to a volume both ways, waiting, or lost; each sync returns at most one write.
// Thread: any (pure). Source: Kubernetes docs, "Persistent Volumes", Binding; "Storage Classes"; the events of the
// persistent volume controller.
#pragma once

#include "api/object/storage.h"
#include "policy/storage/storage_write.h"
#include "policy/storage/volume_match.h"

#include <string>
#include <vector>

namespace spillway::storage {

/// The inputs of a claim's sync.
struct ClaimView {
  const api::PersistentVolumeClaim* claim = nullptr;
  /// The volume that the claim names; null: it does not exist.
  VolumePtr named;
  /// Volumes of the claim's class, and those reserved for it.
  std::vector<VolumePtr> volumes;
  /// The class that the claim names; null: it names none, or it does not exist.
  std::shared_ptr<const api::StorageClass> storage_class;
  /// The default class for claims without a class; empty: there is no default.
  std::string default_class;
  /// Pods that name the claim and have no node yet, joined by commas.
  std::string waiting_pods;
};

StorageStep decide_claim(const ClaimView& view);

bool is_bind_completed(const api::PersistentVolumeClaim& claim);
/// Bound when a pod is placed.
bool waits_for_pod(const api::StorageClass& storage_class);

}  // namespace spillway::storage
