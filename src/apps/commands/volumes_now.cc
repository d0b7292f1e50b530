#include "apps/commands/volumes_now.h"

#include "api/codec/codec.h"
#include "api/object/pod_volumes.h"
#include "client/api_client.h"
#include "policy/node_volumes.h"

#include <type_traits>
#include <utility>
#include <vector>

namespace spillway::apps {

namespace {

template <typename T>
std::shared_ptr<const T> find_in(const std::map<std::string, std::shared_ptr<const T>>& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

VolumesNow::VolumesNow(ClusterView& cluster, const api::Pod& pod) {
  if (api::claims_of(pod).empty()) return;
  const auto read = [&]<typename T>(const std::string& version, const std::string& plural, ByName<T>& into) {
    auto answer = cluster.get(client::object_path(version, plural, {}));
    if (!answer && std::is_same_v<T, api::PersistentVolumeClaim>) {  // a user may read those of one namespace alone
      if (auto own = cluster.get(client::object_path(version, plural, pod.metadata.ns))) answer = std::move(own);
    }
    if (!answer) return unread_.push_back(Error{answer.error().code, answer.error().text(), plural});
    const api::Json* list = answer->find("items");
    if (list == nullptr || list->if_array() == nullptr) return;
    for (const api::Json& each : *list->if_array()) {
      auto value = api::decode<T>(each);
      if (!value) continue;
      const api::ObjectMeta& meta = value->metadata;
      const std::string name = meta.ns.empty() ? meta.name : policy::claim_key(meta.ns, meta.name);
      into.emplace(name, std::make_shared<const T>(*std::move(value)));
    }
  };
  read("v1", "persistentvolumeclaims", claims_);
  read("v1", "persistentvolumes", volumes_);
  read("storage.k8s.io/v1", "storageclasses", classes_);
  read("storage.k8s.io/v1", "csinodes", csi_nodes_);
  read("storage.k8s.io/v1", "volumeattachments", attachments_);
}

scheduling::VolumeView VolumesNow::view(const std::map<std::string, policy::NodeLoad>& nodes) const {
  const auto all = [this](const api::PersistentVolumeClaim&) {
    std::vector<storage::VolumePtr> list;
    for (const auto& [name, volume] : volumes_) list.push_back(volume);
    return list;
  };
  const auto attached = [this](const std::string& node) {
    std::vector<std::shared_ptr<const api::VolumeAttachment>> list;
    for (const auto& [name, attachment] : attachments_) {
      if (attachment->node_name == node) list.push_back(attachment);
    }
    return list;
  };
  return {
      .storage = {.claim = [this](const std::string& ns,
                                  const std::string& name) { return find_in(claims_, policy::claim_key(ns, name)); },
                  .volume = [this](const std::string& name) { return find_in(volumes_, name); },
                  .storage_class = [this](const std::string& name) { return find_in(classes_, name); },
                  .volumes_for = all},
      .nodes = nodes,
      .taken = taken_,
      .csi_node = [this](const std::string& name) { return find_in(csi_nodes_, name); },
      .attachments = attached};
}

}  // namespace spillway::apps
