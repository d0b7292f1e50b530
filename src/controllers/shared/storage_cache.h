// Claims, volumes and classes as they were last seen, and which volumes a claim may get. Thread: loop. Cost: a question
// costs as much as there are free volumes of one class.
#pragma once

#include "api/object/node_affinity.h"
#include "api/object/storage.h"
#include "client/api_client.h"
#include "client/informer.h"
#include "policy/storage/pod_claims.h"
#include "policy/storage/storage_write.h"
#include "policy/storage/volume_match.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace spillway::controllers {

class StorageCache {
 public:
  using ClaimPtr = std::shared_ptr<const api::PersistentVolumeClaim>;
  using ClassPtr = std::shared_ptr<const api::StorageClass>;

  explicit StorageCache(client::ApiClient& client);
  StorageCache(const StorageCache&) = delete;
  StorageCache& operator=(const StorageCache&) = delete;

  client::ObjectCache<api::PersistentVolumeClaim>& claims() { return claims_.cache(); }

  client::ObjectCache<api::PersistentVolume>& volumes() { return volumes_.cache(); }

  client::ObjectCache<api::StorageClass>& classes() { return classes_.cache(); }

  /// The volumes reserved for the claim, and the free ones of its class.
  std::vector<storage::VolumePtr> volumes_for(const api::PersistentVolumeClaim& claim) const;
  /// The volumes reserved for the claim of that key.
  std::set<std::string> reserved_for(const client::ObjectKey& claim) const;
  /// Keys of claims of a class that are not bound for good.
  std::set<client::ObjectKey> waiting(const std::string& storage_class) const;
  /// The newest class that claims without one get, of equally old ones the first by name; empty: none.
  std::string default_class() const;

  storage::StorageLookup lookup() const;
  /// storage::is_reached_from, with the volume's selector taken apart once.
  bool reaches(const api::PersistentVolume& volume, const api::ObjectMeta& node) const;

 private:
  void on_claim(const ClaimPtr& before, const ClaimPtr& after);
  void on_volume(const storage::VolumePtr& before, const storage::VolumePtr& after);

  client::Informer<api::PersistentVolumeClaim> claims_;
  client::Informer<api::PersistentVolume> volumes_;
  client::Informer<api::StorageClass> classes_;
  std::map<std::string, std::set<std::string>> free_;            // by class
  std::map<client::ObjectKey, std::set<std::string>> reserved_;  // by claim
  std::map<std::string, api::NodeSelector> selectors_;           // volumes with node affinity, by name
  std::map<std::string, std::set<client::ObjectKey>> waiting_by_class_;
};

/// "default/data": the claim that a claimRef names.
client::ObjectKey claim_key(const api::ObjectReference& reference);
/// The API path of a write.
std::string path_of(const storage::StorageWrite& write);

}  // namespace spillway::controllers
