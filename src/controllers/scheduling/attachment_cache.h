// Caches of CSINodes and of VolumeAttachments, for the limits of volumes per node. Thread: loop.
#pragma once

#include "api/object/storage.h"
#include "client/api_client.h"
#include "client/informer.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class AttachmentCache {
 public:
  using AttachmentPtr = std::shared_ptr<const api::VolumeAttachment>;

  /// `event`: kube-scheduler's name of the event, a constant.
  using OnRoom = std::function<void(std::string_view event)>;

  /// `on_room`: a node may hold more volumes, or holds fewer.
  AttachmentCache(client::ApiClient& client, OnRoom on_room);
  AttachmentCache(const AttachmentCache&) = delete;
  AttachmentCache& operator=(const AttachmentCache&) = delete;

  /// nullptr: the node has no CSINode.
  std::shared_ptr<const api::CsiNode> csi_node(const std::string& name) const { return csi_nodes_.cache().find(name); }

  std::vector<AttachmentPtr> attached_to(const std::string& node) const;

 private:
  client::Informer<api::CsiNode> csi_nodes_;
  client::Informer<api::VolumeAttachment> attachments_;
  std::map<std::string, std::set<client::ObjectKey>> by_node_;
};

}  // namespace spillway::controllers
