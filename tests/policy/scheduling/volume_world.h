// Claims, volumes, classes and attachments for tests of the filters that ask about volumes. Thread: any.
#pragma once

#include "policy/scheduling/pod_volumes.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::scheduling {

struct VolumeWorld {
  std::map<std::string, std::shared_ptr<api::PersistentVolumeClaim>> claims;  // claims of namespace "shop", by name
  std::map<std::string, std::shared_ptr<api::PersistentVolume>> volumes;
  std::map<std::string, std::shared_ptr<api::StorageClass>> classes;
  std::map<std::string, std::shared_ptr<api::CsiNode>> drivers;  // by node
  std::vector<std::shared_ptr<const api::VolumeAttachment>> attachments;
  std::map<std::string, policy::NodeLoad> nodes;
  std::set<std::string> taken;

  void add_node(const std::string& name, api::StringMap labels = {}, std::vector<api::CsiNode::Driver> with = {});
  /// Bound, to a CSI volume of that handle; several may name one volume.
  api::PersistentVolumeClaim& add_claim(const std::string& name, const std::string& handle,
                                        const std::string& driver = "disk.example.com");
  void attach(const std::string& node, const std::string& handle, const std::string& driver = "disk.example.com");
  /// Counts the pod on the node.
  void run(const std::string& node, const api::Pod& pod);
  VolumeView view() const;
  /// The refusals of each node because of the pod's volumes, "node: text"; a refusal of all nodes is "*: text".
  std::vector<std::string> refusals(const api::Pod& pod, FilterSet left_out = {}) const;
};

/// A pod with these claims of the namespace "shop".
api::Pod pod_with_claims(const std::string& name, const std::vector<std::string>& claims);
/// A pod with a volume of another type: {"rbd": {…}}.
api::Pod pod_with_volume(const std::string& name, const std::string& volume);

}  // namespace spillway::scheduling
