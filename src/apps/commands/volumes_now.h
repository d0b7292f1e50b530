// Claims, volumes and attachments, as the API server has them now. Thread: main, as ClusterView.
#pragma once

#include "api/object/pod.h"
#include "api/object/storage.h"
#include "apps/view/cluster_view.h"
#include "policy/node_load.h"
#include "policy/scheduling/pod_volumes.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::apps {

class VolumesNow {
 public:
  /// A pod without claims reads nothing.
  VolumesNow(ClusterView& cluster, const api::Pod& pod);

  /// Errors of lists that could not be read and count as empty. If just the claims of the pod's namespace were
  /// readable, those are used.
  const std::vector<Error>& unread() const { return unread_; }

  /// The view refers to this object, and to the nodes.
  scheduling::VolumeView view(const std::map<std::string, policy::NodeLoad>& nodes) const;

 private:
  template <typename T>
  using ByName = std::map<std::string, std::shared_ptr<const T>>;

  ByName<api::PersistentVolumeClaim> claims_;  // by namespace and name
  ByName<api::PersistentVolume> volumes_;
  ByName<api::StorageClass> classes_;
  ByName<api::CsiNode> csi_nodes_;
  ByName<api::VolumeAttachment> attachments_;
  std::vector<Error> unread_;
  std::set<std::string> taken_;  // empty: volumes of other pods being placed are unknown
};

}  // namespace spillway::apps
