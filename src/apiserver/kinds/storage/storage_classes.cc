// StorageClasses and VolumeAttributesClasses: the rows of the kinds, and the columns of `kubectl get`.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/storage/storage_kinds.h"
#include "apiserver/kinds/storage/volumes.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

constexpr std::array kClassColumns{
    kNameColumn,
    TableColumn{"Provisioner", "string", "", 0, "Who makes its volumes"},
    TableColumn{"ReclaimPolicy", "string", "", 0, "What becomes of its volumes when released"},
    TableColumn{"VolumeBindingMode", "string", "", 0, "When claims are bound"},
    TableColumn{"AllowVolumeExpansion", "string", "", 0, "Whether claims may grow"},
    kAgeColumn};

TableRow class_row(const api::Json& storage_class, WallTime now) {
  const std::string_view name = storage_class.string_at({"metadata", "name"});
  return {{is_default_class(storage_class) ? fmt::format("{} (default)", name) : std::string(name),
           storage_class.string_at({"provisioner"}), or_else(storage_class.string_at({"reclaimPolicy"}), "Delete"),
           or_else(storage_class.string_at({"volumeBindingMode"}), "<unset>"),
           is_true(storage_class, "allowVolumeExpansion") ? "true" : "false", age_of(storage_class, now)},
          nullptr};
}

constexpr std::array kAttributesColumns{
    kNameColumn, TableColumn{"DriverName", "string", "", 0, "Driver that applies the attributes"}, kAgeColumn};

TableRow attributes_row(const api::Json& attributes_class, WallTime now) {
  return {{attributes_class.string_at({"metadata", "name"}), attributes_class.string_at({"driverName"}),
           age_of(attributes_class, now)},
          nullptr};
}

}  // namespace

Resource storage_class_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"sc"};
  static const KindHooks kHooks{.set_defaults = default_storage_class,
                                .validate_create = validate_storage_class,
                                .validate_update = validate_storage_class_update,
                                .columns = kClassColumns,
                                .table_row = class_row};
  return {.group = "storage.k8s.io",
          .version = "v1",
          .plural = "storageclasses",
          .singular = "storageclass",
          .kind = "StorageClass",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("storageclasses"),
          .short_names = kShortNames,
          .put_creates = true,
          .hooks = &kHooks};
}

Resource volume_attributes_class_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"vac"};
  static const KindHooks kHooks{.validate_create = validate_attributes_class,
                                .validate_update = validate_attributes_class_update,
                                .columns = kAttributesColumns,
                                .table_row = attributes_row};
  return {.group = "storage.k8s.io",
          .version = "v1",
          .plural = "volumeattributesclasses",
          .singular = "volumeattributesclass",
          .kind = "VolumeAttributesClass",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("volumeattributesclasses"),
          .short_names = kShortNames,
          .unattended =
              "Spillway changes no attributes of volumes: the external-resizer of the class's CSI driver has to be "
              "installed",
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
