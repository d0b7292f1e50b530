#include "controllers/shared/owned_pods.h"

#include "api/object/controller_revision.h"
#include "api/object/job.h"
#include "client/informer.h"
#include "policy/workloads/replacement_first.h"

#include <utility>

namespace spillway::controllers {

api::Json owner_reference(const Owner& owner) {
  return api::Json::object({{"apiVersion", owner.api_version},
                            {"kind", owner.kind},
                            {"name", owner.metadata.name},
                            {"uid", owner.metadata.uid},
                            {"controller", true},
                            {"blockOwnerDeletion", true}});
}

api::Json json_of(const api::StringMap& map) {
  api::Json object = api::Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

template <typename T>
void OwnedObjects<T>::on_change(const Ptr& before, const Ptr& after) {
  if (before) {
    const client::ObjectKey key = client::key_of(before->metadata);
    const api::OwnerReference* owner = api::controller_of(before->metadata);
    Index& index = owner != nullptr ? by_owner_ : orphans_;
    const auto entry = index.find(owner != nullptr ? owner->uid : before->metadata.ns);
    if (entry != index.end()) {
      entry->second.erase(key);
      if (entry->second.empty()) index.erase(entry);
    }
  }
  if (!after) return;
  const api::OwnerReference* owner = api::controller_of(after->metadata);
  Index& index = owner != nullptr ? by_owner_ : orphans_;
  index[owner != nullptr ? owner->uid : after->metadata.ns][client::key_of(after->metadata)] = after;
}

template class OwnedObjects<api::Pod>;
template class OwnedObjects<api::ReplicaSet>;
template class OwnedObjects<api::ControllerRevision>;
template class OwnedObjects<api::Job>;

api::Json pod_from_template(const Owner& owner, const api::PodTemplate& pod_template) {
  api::StringMap annotations = pod_template.annotations;
  // the mark of a replaced pod is not copied to later pods
  annotations.erase(std::string(workloads::kReplacementAnnotation));
  return api::Json::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", api::Json::object({{"generateName", owner.metadata.name + "-"},
                                       {"namespace", owner.metadata.ns},
                                       {"labels", json_of(pod_template.labels)},
                                       {"annotations", json_of(annotations)},
                                       {"ownerReferences", api::Json::array({owner_reference(owner)})}})},
       {"spec", pod_template.spec}});
}

api::Json adoption_patch(const Owner& owner, const api::ObjectMeta& object) {
  return api::Json::object(
      {{"metadata",
        api::Json::object({{"uid", object.uid}, {"ownerReferences", api::Json::array({owner_reference(owner)})}})}});
}

api::Json release_patch(const api::ObjectMeta& owner, const api::ObjectMeta& object) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", object.uid},
                                       {"ownerReferences", api::Json::array({api::Json::object(
                                                               {{"$patch", "delete"}, {"uid", owner.uid}})})}})}});
}

api::Json delete_options(const api::ObjectMeta& object) {
  return api::Json::object(
      {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", api::Json::object({{"uid", object.uid}})}});
}

}  // namespace spillway::controllers
