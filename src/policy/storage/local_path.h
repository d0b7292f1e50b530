// The rules of the class local-path: the claims for which a node's process makes a directory, the volume object of the
// directory, and its removal. Thread: any (pure). Source: Kubernetes docs, "Storage Classes", "Persistent Volumes",
// Provisioning, Reclaiming, Delete; "Volumes", local.
#pragma once

#include "api/json/json.h"
#include "api/object/storage.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::storage {

inline constexpr std::string_view kLocalPathClass = "local-path";
inline constexpr std::string_view kLocalPathProvisioner = "spillway.io/local-path";
/// The annotation of a volume that names the node whose directory it is.
inline constexpr std::string_view kLocalPathNode = "spillway.io/node";

/// The directories that hold the volumes of the nodes of this process, by the node's name.
using LocalFolders = std::map<std::string, std::string>;

/// "pvc-UID": the name of the claim's volume and of its directory. It is unique, and nothing that a user chose is in
/// it.
std::string local_volume_name(const api::PersistentVolumeClaim& claim);

struct ProvisionDecision {
  enum class Act { kNothing, kMake, kRefuse } act = Act::kNothing;
  std::string node;  // the node that the scheduler selected, if it is made
  std::string why;   // the refusal, for the event ProvisioningFailed

  friend bool operator==(const ProvisionDecision&, const ProvisionDecision&) = default;
};

/// `storage_class`: the claim's class; null: it does not exist.
ProvisionDecision decide_provision(const api::PersistentVolumeClaim& claim, const api::StorageClass* storage_class,
                                   const LocalFolders& folders);

/// The volume of the claim, reserved for it, on a node whose label kubernetes.io/hostname is its name, as it is of the
/// nodes of `up`. `storage_class`: the class's document, for its reclaimPolicy.
api::Json local_volume(const api::PersistentVolumeClaim& claim, const api::Json& storage_class, const std::string& node,
                       const std::string& folder);

struct RemovalDecision {
  enum class Act { kNothing, kRemove, kRefuse } act = Act::kNothing;
  std::string folder;  // the folder of the directory, which has the name of the volume
  std::string why;     // the refusal, for the event VolumeFailedDelete

  friend bool operator==(const RemovalDecision&, const RemovalDecision&) = default;
};

/// Only a released volume of this provisioner and policy Delete is removed, and only the directory that local_volume()
/// would have named for it: nothing is removed for an edited path.
RemovalDecision decide_removal(const api::PersistentVolume& volume, const LocalFolders& folders);

/// The document of the class.
api::Json local_path_class(bool is_default);

}  // namespace spillway::storage
