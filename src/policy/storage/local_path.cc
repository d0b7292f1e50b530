#include "policy/storage/local_path.h"

#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace spillway::storage {
namespace {

using api::Json;

constexpr std::string_view kNamePrefix = "pvc-";
constexpr std::size_t kUidMax = 64;
constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

/// True for the name of a directory that this provisioner made: a uid of 36 such characters.
bool is_local_volume_name(std::string_view name) {
  if (!name.starts_with(kNamePrefix)) return false;
  const std::string_view uid = name.substr(kNamePrefix.size());
  return !uid.empty() && uid.size() <= kUidMax &&
         std::ranges::all_of(uid, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-'; });
}

std::string annotation(const api::ObjectMeta& meta, std::string_view name) {
  const auto found = meta.annotations.find(name);
  return found == meta.annotations.end() ? std::string() : found->second;
}

std::string path_below(const std::string& folder, const std::string& name) {
  return fmt::format("{}/{}", folder, name);
}

/// The reason why a directory cannot satisfy the claim; nullopt: it can.
std::optional<std::string> refusal_of(const api::PersistentVolumeClaim& claim) {
  if (claim.volume_mode == "Block") return "a directory cannot be a volume with volumeMode Block";
  if (!claim.selector.is_null()) return "claim.Spec.Selector is not supported";
  for (const std::string& mode : claim.access_modes) {
    if (mode != "ReadWriteOnce" && mode != api::kReadWriteOncePod) {
      return fmt::format(
          "access mode {} is not supported, because the directory is on one node: use ReadWriteOnce or "
          "ReadWriteOncePod",
          mode);
    }
  }
  if (!is_local_volume_name(local_volume_name(claim))) return "the claim's uid cannot name a directory";
  return std::nullopt;
}

Json list_of(Json one) {
  return Json::array({std::move(one)});
}

Json modes_of(const api::PersistentVolumeClaim& claim) {
  Json modes = Json::array();
  for (const std::string& mode : claim.access_modes) modes.if_array()->push_back(Json(mode));
  return modes;
}

Json affinity_to(const std::string& hostname) {
  Json expression = Json::object({{"key", kHostnameLabel}, {"operator", "In"}, {"values", list_of(Json(hostname))}});
  Json term = Json::object({{"matchExpressions", list_of(std::move(expression))}});
  return Json::object({{"required", Json::object({{"nodeSelectorTerms", list_of(std::move(term))}})}});
}

}  // namespace

std::string local_volume_name(const api::PersistentVolumeClaim& claim) {
  return fmt::format("{}{}", kNamePrefix, claim.metadata.uid);
}

ProvisionDecision decide_provision(const api::PersistentVolumeClaim& claim, const api::StorageClass* storage_class,
                                   const LocalFolders& folders) {
  using enum ProvisionDecision::Act;
  if (claim.metadata.deletion_timestamp || !claim.volume_name.empty() || is_bind_completed(claim)) return {};
  if (storage_class == nullptr || storage_class->provisioner != kLocalPathProvisioner) return {};
  // The binder has found that no volume fits, and names the provisioner.
  if (annotation(claim.metadata, api::kStorageProvisioner) != kLocalPathProvisioner) return {};
  if (!waits_for_pod(*storage_class)) {
    return {kRefuse,
            {},
            fmt::format("no node is selected: StorageClass \"{}\" needs volumeBindingMode WaitForFirstConsumer",
                        storage_class->metadata.name)};
  }
  std::string node = annotation(claim.metadata, api::kSelectedNode);
  if (!folders.contains(node)) return {};  // another process makes the directory, or no node is selected yet
  if (auto why = refusal_of(claim)) return {kRefuse, {}, *std::move(why)};
  return {kMake, std::move(node), {}};
}

Json local_volume(const api::PersistentVolumeClaim& claim, const Json& storage_class, const std::string& node,
                  const std::string& folder) {
  const std::string name = local_volume_name(claim);
  const auto wanted = claim.requests.find("storage");
  const std::string_view policy = storage_class.string_at({"reclaimPolicy"});
  Json claim_ref = Json::object({{"apiVersion", "v1"},
                                 {"kind", "PersistentVolumeClaim"},
                                 {"namespace", claim.metadata.ns},
                                 {"name", claim.metadata.name},
                                 {"uid", claim.metadata.uid}});
  Json spec = Json::object(
      {{"capacity", Json::object({{"storage", wanted == claim.requests.end() ? "0" : wanted->second.to_string()}})},
       {"accessModes", modes_of(claim)},
       {"persistentVolumeReclaimPolicy", policy.empty() ? "Delete" : policy},
       {"storageClassName", class_of(claim)},
       {"volumeMode", "Filesystem"},
       {"local", Json::object({{"path", path_below(folder, name)}})},
       {"nodeAffinity", affinity_to(node)},
       {"claimRef", std::move(claim_ref)}});
  Json annotations = Json::object({{api::kProvisionedBy, kLocalPathProvisioner}, {kLocalPathNode, node}});
  return Json::object({{"apiVersion", "v1"},
                       {"kind", "PersistentVolume"},
                       {"metadata", Json::object({{"name", name}, {"annotations", std::move(annotations)}})},
                       {"spec", std::move(spec)}});
}

RemovalDecision decide_removal(const api::PersistentVolume& volume, const LocalFolders& folders) {
  using enum RemovalDecision::Act;
  if (annotation(volume.metadata, api::kProvisionedBy) != kLocalPathProvisioner) return {};
  if (volume.status.phase != "Released" || volume.reclaim_policy != "Delete") return {};
  const auto folder = folders.find(annotation(volume.metadata, kLocalPathNode));
  if (folder == folders.end()) return {};  // another process removes the directory, if it runs the node
  const std::string& name = volume.metadata.name;
  const std::string expected = path_below(folder->second, name);
  if (!is_local_volume_name(name) || volume.local.string_at({"path"}) != expected) {
    return {kRefuse,
            {},
            fmt::format("nothing is removed: its path is not {}; delete the directory and the PersistentVolume by hand",
                        expected)};
  }
  return {kRemove, folder->second, {}};
}

Json local_path_class(bool is_default) {
  Json metadata = Json::object({{"name", kLocalPathClass}});
  if (is_default) {
    metadata["annotations"] = Json::object({{"storageclass.kubernetes.io/is-default-class", "true"}});
  }
  return Json::object({{"apiVersion", "storage.k8s.io/v1"},
                       {"kind", "StorageClass"},
                       {"metadata", std::move(metadata)},
                       {"provisioner", kLocalPathProvisioner},
                       {"reclaimPolicy", "Delete"},
                       {"volumeBindingMode", api::kWaitForFirstConsumer}});
}

}  // namespace spillway::storage
