#include "apps/commands/claims_now.h"

#include "api/codec/codec.h"
#include "api/object/storage.h"
#include "client/api_client.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apps {

storage::PodClaims claims_now(ClusterView& cluster, const api::Pod& pod) {
  if (storage::claims_of(pod).empty()) return {};
  const auto read = [&cluster]<typename T>(const std::string& path,
                                           std::map<std::string, std::shared_ptr<const T>>& into) {
    for (const api::Json& each : cluster.list(path)) {
      auto value = api::decode<T>(each);
      if (value) into.emplace(value->metadata.name, std::make_shared<const T>(*value));
    }
  };
  std::map<std::string, std::shared_ptr<const api::PersistentVolumeClaim>> claims;
  std::map<std::string, std::shared_ptr<const api::PersistentVolume>> volumes;
  std::map<std::string, std::shared_ptr<const api::StorageClass>> classes;
  read(client::object_path("v1", "persistentvolumeclaims", pod.metadata.ns), claims);
  read(client::object_path("v1", "persistentvolumes", {}), volumes);
  read(client::object_path("storage.k8s.io/v1", "storageclasses", {}), classes);
  const auto find_in = [](const auto& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? nullptr : found->second;
  };
  const auto all = [&volumes](const api::PersistentVolumeClaim&) {
    std::vector<storage::VolumePtr> list;
    for (const auto& [name, volume] : volumes) list.push_back(volume);
    return list;
  };
  return storage::claims_for(
      pod, {.claim = [&](const std::string&, const std::string& name) { return find_in(claims, name); },
            .volume = [&](const std::string& name) { return find_in(volumes, name); },
            .storage_class = [&](const std::string& name) { return find_in(classes, name); },
            .volumes_for = all});
}

}  // namespace spillway::apps
