// VolumeAttachments and CSIStorageCapacities: the rows of the kinds, and what `kubectl get` prints of them.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/storage/storage_kinds.h"
#include "apiserver/kinds/storage/volumes.h"

#include <array>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

constexpr std::array kAttachmentColumns{TableColumn{"Name", "string", "name", 0, "Name of the object"},
                                        TableColumn{"Attacher", "string", "name", 0, "The driver that attaches"},
                                        TableColumn{"PV", "string", "", 0, "The volume, where it is an object"},
                                        TableColumn{"Node", "string", "", 0, "Where it is to be attached"},
                                        TableColumn{"Attached", "boolean", "", 0, "Whether it is"},
                                        TableColumn{"Age", "string", "", 0, "Time since creation"}};

constexpr std::array kCapacityColumns{
    TableColumn{"Name", "string", "name", 0, "Name of the object"},
    TableColumn{"StorageClassName", "string", "", 0, "The class of the volumes it is about"},
    TableColumn{"Capacity", "string", "", 0, "How much can still be provisioned"}};

TableRow attachment_row(const Json& attachment, WallTime now) {
  return {{attachment.string_at({"metadata", "name"}), attachment.string_at({"spec", "attacher"}),
           attachment.string_at({"spec", "source", "persistentVolumeName"}), attachment.string_at({"spec", "nodeName"}),
           is_true(value_of(attachment, "status"), "attached"), age_of(attachment, now)},
          nullptr};
}

TableRow capacity_row(const Json& capacity, WallTime) {
  return {{capacity.string_at({"metadata", "name"}), text(capacity, "storageClassName"),
           or_else(text(capacity, "capacity"), "<unset>")},
          nullptr};
}

}  // namespace

Resource volume_attachment_kind() {
  static const KindHooks kHooks{.validate_create = validate_volume_attachment,
                                .validate_update = validate_volume_attachment_update,
                                .columns = kAttachmentColumns,
                                .table_row = attachment_row};
  return {.group = "storage.k8s.io",
          .version = "v1",
          .plural = "volumeattachments",
          .singular = "volumeattachment",
          .kind = "VolumeAttachment",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("volumeattachments"),
          .subresources = kStatusOnly,
          .status_subresource = true,
          .status_keeps_metadata = true,
          .requires_version = true,
          .metadata = {.update_whole = 2, .update_change = 0, .status_whole = 2, .status_change = 0},
          .hooks = &kHooks};
}

Resource csi_storage_capacity_kind() {
  static const KindHooks kHooks{.validate_create = validate_storage_capacity,
                                .validate_update = validate_storage_capacity_update,
                                .columns = kCapacityColumns,
                                .table_row = capacity_row};
  return {.group = "storage.k8s.io",
          .version = "v1",
          .plural = "csistoragecapacities",
          .singular = "csistoragecapacity",
          .kind = "CSIStorageCapacity",
          .verbs = kAllVerbs,
          .storage = below("csistoragecapacities"),
          .requires_version = true,
          .metadata = {.create = 2},
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
