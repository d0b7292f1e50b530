#include "controllers/shared/pods_by_node.h"

#include "client/informer.h"

namespace spillway::controllers {

PodsByNode::PodsByNode(client::ObjectCache<api::Pod>& pods) {
  pods.listen({[this](const PodPtr& before, const PodPtr& after, Now) { on_change(before, after); }});
}

void PodsByNode::on_change(const PodPtr& before, const PodPtr& after) {
  if (before && !before->spec.node_name.empty()) {
    const auto pods = by_node_.find(before->spec.node_name);
    if (pods != by_node_.end()) {
      pods->second.erase(client::key_of(before->metadata));
      if (pods->second.empty()) by_node_.erase(pods);
    }
  }
  if (after && !after->spec.node_name.empty()) {
    by_node_[after->spec.node_name][client::key_of(after->metadata)] = after;
  }
}

std::vector<PodPtr> PodsByNode::on(std::string_view node) const {
  std::vector<PodPtr> result;
  const auto pods = by_node_.find(node);
  if (pods == by_node_.end()) return result;
  for (const auto& [key, pod] : pods->second) result.push_back(pod);
  return result;
}

}  // namespace spillway::controllers
