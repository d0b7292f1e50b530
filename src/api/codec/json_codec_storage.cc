#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/storage.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<PersistentVolumeClaim> auto& claim) {
  v.type_meta(PersistentVolumeClaim::kApiVersion, PersistentVolumeClaim::kKind);
  v.object("metadata", claim.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("accessModes", claim.access_modes);
    spec.field("selector", claim.selector);
    spec.nested("resources", [&](V& resources) { resources.field("requests", claim.requests); });
    spec.field("volumeName", claim.volume_name);
    spec.field("storageClassName", claim.storage_class_name);
    spec.field("volumeMode", claim.volume_mode);
  });
  v.nested("status", [&](V& status) {
    status.field("phase", claim.status.phase);
    status.field("accessModes", claim.status.access_modes);
    status.field("capacity", claim.status.capacity);
  });
}

template <typename V>
void describe(V& v, Is<PersistentVolume> auto& volume) {
  v.type_meta(PersistentVolume::kApiVersion, PersistentVolume::kKind);
  v.object("metadata", volume.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("capacity", volume.capacity);
    spec.field("accessModes", volume.access_modes);
    spec.object("claimRef", volume.claim_ref);
    spec.field("persistentVolumeReclaimPolicy", volume.reclaim_policy);
    spec.field("storageClassName", volume.storage_class_name);
    spec.field("volumeMode", volume.volume_mode);
    spec.nested("nodeAffinity", [&](V& affinity) { affinity.field("required", volume.required_nodes); });
    spec.field("hostPath", volume.host_path);
    spec.field("local", volume.local);
    spec.nested("csi", [&](V& csi) {
      csi.field("driver", volume.csi_driver);
      csi.field("volumeHandle", volume.csi_handle);
    });
  });
  v.nested("status", [&](V& status) {
    status.field("phase", volume.status.phase);
    status.field("message", volume.status.message);
    status.field("reason", volume.status.reason);
  });
}

template <typename V>
void describe(V& v, Is<StorageClass> auto& storage_class) {
  v.type_meta(StorageClass::kApiVersion, StorageClass::kKind);
  v.object("metadata", storage_class.metadata);
  v.field("provisioner", storage_class.provisioner);
  v.field("volumeBindingMode", storage_class.volume_binding_mode);
  v.field("allowedTopologies", storage_class.allowed_topologies);
}

template <typename V>
void describe(V& v, Is<CsiNode::Driver> auto& driver) {
  v.kept("name", driver.name);
  v.nested("allocatable", [&](V& allocatable) { allocatable.field("count", driver.volumes_max); });
}

template <typename V>
void describe(V& v, Is<CsiNode> auto& node) {
  v.type_meta(CsiNode::kApiVersion, CsiNode::kKind);
  v.object("metadata", node.metadata);
  v.nested("spec", [&](V& spec) { spec.list("drivers", node.drivers, "name", &CsiNode::Driver::name); });
}

template <typename V>
void describe(V& v, Is<VolumeAttachment> auto& attachment) {
  v.type_meta(VolumeAttachment::kApiVersion, VolumeAttachment::kKind);
  v.object("metadata", attachment.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("attacher", attachment.attacher);
    spec.field("nodeName", attachment.node_name);
    spec.nested("source", [&](V& source) { source.field("persistentVolumeName", attachment.volume_name); });
  });
}

template struct Codec<PersistentVolumeClaim>;
template struct Codec<PersistentVolume>;
template struct Codec<StorageClass>;
template struct Codec<CsiNode>;
template struct Codec<VolumeAttachment>;

}  // namespace spillway::api
