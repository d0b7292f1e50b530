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

using Reaches = std::function<bool(const api::PersistentVolume& volume, const api::ObjectMeta& node)>;

/// Lookups of claims, volumes and classes; null: no such object.
struct StorageLookup {
  std::function<std::shared_ptr<const api::PersistentVolumeClaim>(const std::string& ns, const std::string& name)>
      claim;
  std::function<VolumePtr(const std::string& name)> volume;
  std::function<std::shared_ptr<const api::StorageClass>(const std::string& name)> storage_class;
  /// Volumes of a class, and those reserved for the claim.
  std::function<std::vector<VolumePtr>(const api::PersistentVolumeClaim& claim)> volumes_for;
  /// Replaces is_reached_from() where the volumes' selectors are already parsed.
  Reaches reaches = is_reached_from;
};

using ClaimPtr = std::shared_ptr<const api::PersistentVolumeClaim>;

struct UnboundClaim {
  ClaimPtr claim;
  std::vector<VolumePtr> volumes;  // candidates for the claim
  std::shared_ptr<const api::StorageClass> storage_class;
};

/// The claims of one pod, parsed once for all nodes.
struct PodClaims {
  /// The error for which the pod can run nowhere, in upstream's words; empty: none.
  std::string problem;
  std::vector<VolumePtr> bound;
  Reaches reaches = is_reached_from;
  /// The claims that are bound when the pod is placed.
  std::vector<UnboundClaim> unbound;
  /// Names of the ReadWriteOncePod claims.
  std::vector<std::string> exclusive;
};

PodClaims claims_for(const api::Pod& pod, const StorageLookup& lookup);

/// The volume for each unbound claim on one node; or the refusal of that node.
struct ClaimPlan {
  std::string refusal;  // upstream's words; empty: the node will do
  std::vector<std::pair<ClaimPtr, VolumePtr>> bindings;
  /// Claims for which a provisioner must make a volume on the node.
  std::vector<ClaimPtr> provisions;
};

/// The write that requests a volume from the claim's provisioner that the node reaches; nullopt: it was requested
/// before.
std::optional<StorageWrite> ask_for_volume(const api::PersistentVolumeClaim& claim, const std::string& node);
/// The node for which the volume was requested; empty: none.
std::string selected_node(const api::PersistentVolumeClaim& claim);

/// `taken`: volumes that other pods get.
ClaimPlan plan_claims(const PodClaims& claims, const api::ObjectMeta& node, const std::set<std::string>& taken);

}  // namespace spillway::storage
