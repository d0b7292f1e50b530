// The claims of a pod, and whether they let it run somewhere. Thread: any (pure).
// Source: Kubernetes docs, "Scheduling Framework"; "Storage Classes", Volume Binding Mode.
#pragma once

#include "api/object/pod.h"
#include "api/object/storage.h"
#include "policy/storage/volume_match.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::storage {

/// The names of the claims that the pod's volumes stand for, each once, in the order of the volumes.
std::vector<std::string> claims_of(const api::Pod& pod);

using Reaches = std::function<bool(const api::PersistentVolume& volume, const api::ObjectMeta& node)>;

/// What is known of claims, volumes and classes; null: it does not exist.
struct StorageLookup {
  std::function<std::shared_ptr<const api::PersistentVolumeClaim>(const std::string& ns, const std::string& name)>
      claim;
  std::function<VolumePtr(const std::string& name)> volume;
  std::function<std::shared_ptr<const api::StorageClass>(const std::string& name)> storage_class;
  /// Volumes of a class, and those reserved for the claim.
  std::function<std::vector<VolumePtr>(const api::PersistentVolumeClaim& claim)> volumes_for;
  /// is_reached_from, by whoever has taken the volumes' selectors apart before.
  Reaches reaches = is_reached_from;
};

/// The claims of one pod, looked at once and asked about for every node.
struct PodClaims {
  /// Why the pod can run nowhere, in upstream's words; empty: it may.
  std::string problem;
  std::vector<VolumePtr> bound;
  Reaches reaches = is_reached_from;
  /// Those that are bound when the pod is placed, with the volumes they may get.
  std::vector<std::pair<std::shared_ptr<const api::PersistentVolumeClaim>, std::vector<VolumePtr>>> unbound;
};

PodClaims claims_for(const api::Pod& pod, const StorageLookup& lookup);

/// Which volume each unbound claim gets on a node; or why not.
struct ClaimPlan {
  std::string refusal;  // upstream's words; empty: the node will do
  std::vector<std::pair<std::shared_ptr<const api::PersistentVolumeClaim>, VolumePtr>> bindings;
};

/// `taken`: volumes that other pods get.
ClaimPlan plan_claims(const PodClaims& claims, const api::ObjectMeta& node, const std::set<std::string>& taken);

}  // namespace spillway::storage
