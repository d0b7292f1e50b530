// The filters for a pod's volumes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone, in this order.
// Thread: any (pure). Complexity: a pod with a ReadWriteOncePod claim costs one pass over all nodes.
// Source: Kubernetes docs, "Scheduler Configuration"; "Node-specific Volume Limits"; "Persistent Volumes", Access
// Modes.
#pragma once

#include "api/object/pod.h"
#include "api/object/pod_volumes.h"
#include "api/object/storage.h"
#include "policy/node_load.h"
#include "policy/scheduling/filter.h"
#include "policy/storage/attachable_volumes.h"
#include "policy/storage/pod_claims.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace spillway::scheduling {

/// Nodes and volumes for the filter; all of them must outlive it.
struct VolumeView {
  storage::StorageLookup storage;
  const std::map<std::string, policy::NodeLoad>& nodes;
  const std::set<std::string>& taken;  // volumes that other pods get
  /// nullptr: the node has no CSINode.
  std::function<std::shared_ptr<const api::CsiNode>(const std::string& node)> csi_node;
  /// VolumeAttachments of the node, which may outlive the pods they were for.
  std::function<std::vector<std::shared_ptr<const api::VolumeAttachment>>(const std::string& node)> attachments;
};

class PodVolumes {
 public:
  PodVolumes(const api::Pod& pod, VolumeView view);
  PodVolumes(const PodVolumes&) = delete;
  PodVolumes& operator=(const PodVolumes&) = delete;

  /// The error for which the pod can run nowhere, in upstream's words; empty: none.
  const std::string& problem() const { return claims_.problem; }

  /// The filter; empty: the pod's volumes restrict no node. Valid as long as this object.
  VolumeFilter filter() const;

  /// True if claims get a volume when the pod is placed.
  bool waits_for_claims() const { return !claims_.unbound.empty(); }

  storage::ClaimPlan plan(const api::ObjectMeta& node) const;

 private:
  std::optional<Refusal> refuse(const policy::NodeLoad& node, FilterSet left_out) const;
  std::optional<Refusal> check_restrictions(const policy::NodeLoad& node) const;
  std::optional<Refusal> check_limits(const policy::NodeLoad& node) const;
  /// Volumes in use on the node, or attached to it, by driver.
  std::map<std::string, std::set<std::string>> in_use(const policy::NodeLoad& node) const;

  VolumeView view_;
  std::string ns_;
  storage::PodClaims claims_;
  std::vector<api::ExclusiveDisk> disks_;
  std::map<std::string, std::size_t> exclusive_;         // claims by key, and how many pods use them on all nodes
  std::map<std::string, std::set<std::string>> wanted_;  // by driver, the volumes the pod needs
};

}  // namespace spillway::scheduling
