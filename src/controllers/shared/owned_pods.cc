#include "controllers/shared/owned_pods.h"

#include "client/informer.h"

#include <utility>

namespace spillway::controllers {

namespace {

api::Json owner_reference(const Owner& owner) {
  return api::Json::object({{"apiVersion", owner.api_version},
                            {"kind", owner.kind},
                            {"name", owner.metadata.name},
                            {"uid", owner.metadata.uid},
                            {"controller", true},
                            {"blockOwnerDeletion", true}});
}

api::Json strings(const api::StringMap& map) {
  api::Json object = api::Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

}  // namespace

void OwnedPods::on_change(const PodPtr& before, const PodPtr& after) {
  if (before) {
    const client::ObjectKey key = client::key_of(before->metadata);
    const api::OwnerReference* owner = api::controller_of(before->metadata);
    auto& index = owner != nullptr ? by_owner_ : orphans_;
    const auto entry = index.find(owner != nullptr ? owner->uid : before->metadata.ns);
    if (entry != index.end()) {
      entry->second.erase(key);
      if (entry->second.empty()) index.erase(entry);
    }
  }
  if (!after) return;
  const api::OwnerReference* owner = api::controller_of(after->metadata);
  auto& index = owner != nullptr ? by_owner_ : orphans_;
  index[owner != nullptr ? owner->uid : after->metadata.ns][client::key_of(after->metadata)] = after;
}

std::vector<PodPtr> OwnedPods::of(const std::string& owner_uid) const {
  std::vector<PodPtr> pods;
  const auto entry = by_owner_.find(owner_uid);
  if (entry == by_owner_.end()) return pods;
  for (const auto& [key, pod] : entry->second) pods.push_back(pod);
  return pods;
}

std::vector<PodPtr> OwnedPods::orphans_in(const std::string& ns) const {
  std::vector<PodPtr> pods;
  const auto entry = orphans_.find(ns);
  if (entry == orphans_.end()) return pods;
  for (const auto& [key, pod] : entry->second) pods.push_back(pod);
  return pods;
}

api::Json pod_from_template(const Owner& owner, const api::PodTemplate& pod_template) {
  return api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", api::Json::object({{"generateName", owner.metadata.name + "-"},
                                       {"namespace", owner.metadata.ns},
                                       {"labels", strings(pod_template.labels)},
                                       {"annotations", strings(pod_template.annotations)},
                                       {"ownerReferences", api::Json::array({owner_reference(owner)})}})},
       {"spec", pod_template.spec}});
}

api::Json adoption_patch(const Owner& owner, const api::Pod& pod) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod.metadata.uid},
                                       {"ownerReferences", api::Json::array({owner_reference(owner)})}})}});
}

api::Json release_patch(const api::ObjectMeta& owner, const api::Pod& pod) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod.metadata.uid},
                                       {"ownerReferences", api::Json::array({api::Json::object(
                                                               {{"$patch", "delete"}, {"uid", owner.uid}})})}})}});
}

api::Json delete_options(const api::Pod& pod) {
  return api::Json::object({{"apiVersion", "v1"},
                            {"kind", "DeleteOptions"},
                            {"preconditions", api::Json::object({{"uid", pod.metadata.uid}})}});
}

}  // namespace spillway::controllers
