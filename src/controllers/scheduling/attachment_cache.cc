#include "controllers/scheduling/attachment_cache.h"

#include "controllers/shared/paths.h"

#include <utility>

namespace spillway::controllers {

AttachmentCache::AttachmentCache(client::ApiClient& client, OnRoom on_room)
    : csi_nodes_(client, client::object_path("storage.k8s.io/v1", "csinodes", {}), {}, client::Need::kOptional),
      attachments_(client, client::object_path("storage.k8s.io/v1", "volumeattachments", {}), {},
                   client::Need::kOptional) {
  csi_nodes_.cache().listen({[on_room](const auto& before, const auto& after, Now) {
    if (!before || !after) {
      on_room(after ? "CSINodeAdd" : "CSINodeDelete");
    } else if (before->drivers != after->drivers) {
      on_room("CSINodeUpdate");
    }
  }});
  attachments_.cache().listen({[this, on_room = std::move(on_room)](const auto& before, const auto& after, Now) {
    if (before) {
      const auto node = by_node_.find(before->node_name);
      node->second.erase(client::key_of(before->metadata));
      if (node->second.empty()) by_node_.erase(node);
    }
    if (after) {
      by_node_[after->node_name].insert(client::key_of(after->metadata));
    } else {
      on_room("VolumeAttachmentDelete");
    }
  }});
}

std::vector<AttachmentCache::AttachmentPtr> AttachmentCache::attached_to(const std::string& node) const {
  std::vector<AttachmentPtr> attached;
  const auto here = by_node_.find(node);
  if (here == by_node_.end()) return attached;
  for (const client::ObjectKey& key : here->second) {
    if (AttachmentPtr attachment = attachments_.cache().find(key)) attached.push_back(std::move(attachment));
  }
  return attached;
}

}  // namespace spillway::controllers
