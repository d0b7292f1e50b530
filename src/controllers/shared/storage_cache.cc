#include "controllers/shared/storage_cache.h"

#include "policy/storage/claim_rules.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

namespace spillway::controllers {

namespace {

template <typename Map>
void take_out(Map& map, const std::string& key, const std::string& name) {
  const auto found = map.find(key);
  if (found == map.end()) return;
  found->second.erase(name);
  if (found->second.empty()) map.erase(found);
}

template <typename Map>
std::set<std::string> names_at(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::set<std::string>() : found->second;
}

bool is_default(const api::StorageClass& one) {
  for (const std::string_view name :
       {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}) {
    const auto found = one.metadata.annotations.find(name);
    if (found != one.metadata.annotations.end() && found->second == "true") return true;
  }
  return false;
}

}  // namespace

client::ObjectKey claim_key(const api::ObjectReference& reference) {
  return fmt::format("{}/{}", reference.ns, reference.name);
}

std::string path_of(const storage::StorageWrite& write) {
  using enum storage::WriteTo;
  const bool of_claim = write.target == kClaim || write.target == kClaimStatus;
  const bool of_status = write.target == kClaimStatus || write.target == kVolumeStatus;
  return client::object_path("v1", of_claim ? "persistentvolumeclaims" : "persistentvolumes", write.ns, write.name,
                             of_status ? "status" : "");
}

StorageCache::StorageCache(client::ApiClient& client)
    : claims_(client, client::object_path("v1", "persistentvolumeclaims", {})),
      volumes_(client, client::object_path("v1", "persistentvolumes", {})),
      classes_(client, client::object_path("storage.k8s.io/v1", "storageclasses", {})) {
  claims_.cache().listen({[this](const auto& before, const auto& after, Now) { on_claim(before, after); }});
  volumes_.cache().listen({[this](const auto& before, const auto& after, Now) { on_volume(before, after); }});
}

void StorageCache::on_claim(const ClaimPtr& before, const ClaimPtr& after) {
  if (before) take_out(waiting_by_class_, storage::class_of(*before), client::key_of(before->metadata));
  if (after && !storage::is_bind_completed(*after)) {
    waiting_by_class_[storage::class_of(*after)].insert(client::key_of(after->metadata));
  }
}

void StorageCache::on_volume(const storage::VolumePtr& before, const storage::VolumePtr& after) {
  if (before) {
    take_out(free_, storage::class_of(*before), before->metadata.name);
    if (before->claim_ref) take_out(reserved_, claim_key(*before->claim_ref), before->metadata.name);
  }
  if (before && (!after || before->required_nodes != after->required_nodes)) selectors_.erase(before->metadata.name);
  if (!after) return;
  if (!after->required_nodes.is_null() && !selectors_.contains(after->metadata.name)) {
    selectors_.emplace(after->metadata.name, api::parse_node_selector(after->required_nodes));
  }
  if (after->claim_ref) {
    reserved_[claim_key(*after->claim_ref)].insert(after->metadata.name);
  } else {
    free_[storage::class_of(*after)].insert(after->metadata.name);
  }
}

std::vector<storage::VolumePtr> StorageCache::volumes_for(const api::PersistentVolumeClaim& claim) const {
  std::vector<storage::VolumePtr> found;
  const auto add = [&](const auto& map, const std::string& key) {
    const auto names = map.find(key);
    if (names == map.end()) return;
    for (const std::string& name : names->second) {
      if (auto volume = volumes_.cache().find(name)) found.push_back(std::move(volume));
    }
  };
  add(reserved_, client::key_of(claim.metadata));
  add(free_, storage::class_of(claim));
  return found;
}

std::set<std::string> StorageCache::reserved_for(const client::ObjectKey& claim) const {
  return names_at(reserved_, claim);
}

std::set<client::ObjectKey> StorageCache::waiting(const std::string& storage_class) const {
  return names_at(waiting_by_class_, storage_class);
}

std::string StorageCache::default_class() const {
  const api::StorageClass* newest = nullptr;
  for (const auto& [name, one] : classes_.cache().all()) {
    if (!is_default(*one)) continue;
    if (newest == nullptr || newest->metadata.creation_timestamp < one->metadata.creation_timestamp) newest = one.get();
  }
  return newest == nullptr ? std::string() : newest->metadata.name;
}

bool StorageCache::reaches(const api::PersistentVolume& volume, const api::ObjectMeta& node) const {
  if (volume.required_nodes.is_null()) return true;
  const auto known = selectors_.find(volume.metadata.name);
  if (known == selectors_.end()) return storage::is_reached_from(volume, node);
  const Result<bool> matches = known->second.matches(node);
  return matches && *matches;
}

storage::StorageLookup StorageCache::lookup() const {
  return {.claim = [this](const std::string& ns,
                          const std::string& name) { return claims_.cache().find(fmt::format("{}/{}", ns, name)); },
          .volume = [this](const std::string& name) { return volumes_.cache().find(name); },
          .storage_class = [this](const std::string& name) { return classes_.cache().find(name); },
          .volumes_for = [this](const api::PersistentVolumeClaim& claim) { return volumes_for(claim); },
          .reaches = [this](const api::PersistentVolume& volume,
                            const api::ObjectMeta& node) { return reaches(volume, node); }};
}

}  // namespace spillway::controllers
