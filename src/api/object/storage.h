// PersistentVolumes, the claims for them, the classes both name, and the volumes that CSI drivers attach to nodes.
// Thread: any (plain values). Source: Kubernetes API reference, "PersistentVolume", "PersistentVolumeClaim",
// "StorageClass", "CSINode", "VolumeAttachment".
#pragma once

#include "api/json/json.h"
#include "api/object/event.h"
#include "api/object/meta.h"
#include "api/object/pod.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

inline constexpr std::string_view kClaimBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";
inline constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";
inline constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";
inline constexpr std::string_view kWaitForFirstConsumer = "WaitForFirstConsumer";
inline constexpr std::string_view kReadWriteOncePod = "ReadWriteOncePod";
/// The node for which a claim's volume must be made; written by the scheduler.
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
/// The annotation that names the provisioner of a claim's volume; older provisioners read the beta name.
inline constexpr std::string_view kStorageProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner";

struct PersistentVolumeClaim {
  static constexpr std::string_view kKind = "PersistentVolumeClaim";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::vector<std::string> access_modes;
  Json selector;  // null: any volume
  ResourceList requests;
  std::string volume_name;
  std::optional<std::string> storage_class_name;
  std::string volume_mode;  // empty: Filesystem

  struct Status {
    std::string phase;  // Pending, Bound, Lost
    std::vector<std::string> access_modes;
    ResourceList capacity;

    friend bool operator==(const Status&, const Status&) = default;
  } status;

  friend bool operator==(const PersistentVolumeClaim&, const PersistentVolumeClaim&) = default;
};

struct PersistentVolume {
  static constexpr std::string_view kKind = "PersistentVolume";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  ResourceList capacity;
  std::vector<std::string> access_modes;
  std::optional<ObjectReference> claim_ref;
  std::string reclaim_policy;  // Retain, Delete, Recycle
  std::string storage_class_name;
  std::string volume_mode;  // empty: Filesystem
  Json required_nodes;      // a v1.NodeSelector; null: every node reaches it
  Json host_path;           // null: the volume is of another type
  Json local;               // null: the volume is of another type
  std::string csi_driver;   // empty: it is of another type
  std::string csi_handle;   // its name in the driver

  struct Status {
    std::string phase;  // Pending, Available, Bound, Released, Failed
    std::string message;
    std::string reason;

    friend bool operator==(const Status&, const Status&) = default;
  } status;

  friend bool operator==(const PersistentVolume&, const PersistentVolume&) = default;
};

struct StorageClass {
  static constexpr std::string_view kKind = "StorageClass";
  static constexpr std::string_view kApiVersion = "storage.k8s.io/v1";
  ObjectMeta metadata;
  std::string provisioner;
  std::string volume_binding_mode;  // empty: Immediate
  Json allowed_topologies;          // a list of v1.TopologySelectorTerm; null: any node

  friend bool operator==(const StorageClass&, const StorageClass&) = default;
};

/// The CSI drivers of a node, as they report themselves; the object has the node's name.
struct CsiNode {
  static constexpr std::string_view kKind = "CSINode";
  static constexpr std::string_view kApiVersion = "storage.k8s.io/v1";

  struct Driver {
    std::string name;
    std::optional<std::int32_t> volumes_max;  // the driver's limit there; nullopt: any number

    friend bool operator==(const Driver&, const Driver&) = default;
  };

  ObjectMeta metadata;
  std::vector<Driver> drivers;

  friend bool operator==(const CsiNode&, const CsiNode&) = default;
};

/// A volume that must be attached to a node, or is.
struct VolumeAttachment {
  static constexpr std::string_view kKind = "VolumeAttachment";
  static constexpr std::string_view kApiVersion = "storage.k8s.io/v1";
  ObjectMeta metadata;
  std::string attacher;  // the CSI driver
  std::string node_name;
  std::string volume_name;  // empty: a volume that is no object

  friend bool operator==(const VolumeAttachment&, const VolumeAttachment&) = default;
};

}  // namespace spillway::api
