// PersistentVolumes and PersistentVolumeClaims: the rows of the kinds, and what `kubectl get` prints of them.
#include "apiserver/kinds/cells.h"
#include "apiserver/kinds/core/core_kinds.h"
#include "apiserver/kinds/fields/fields.h"
#include "apiserver/kinds/limits/limits.h"
#include "apiserver/kinds/row_parts.h"
#include "apiserver/kinds/storage/volumes.h"
#include "apiserver/kinds/tables.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace spillway::apiserver::kinds {

namespace {

using api::Json;

constexpr std::string_view kUnset = "<unset>";

constexpr TableColumn kVolumeModeColumn{"VolumeMode", "string", "", 1, "Filesystem or Block"};
constexpr TableColumn kAttributesColumn{"VolumeAttributesClass", "string", "", 0, "Class of changeable attributes"};

constexpr std::array kVolumeColumns{kNameColumn,
                                    TableColumn{"Capacity", "string", "", 0, "How much it holds"},
                                    TableColumn{"Access Modes", "string", "", 0, "Ways it may be mounted"},
                                    TableColumn{"Reclaim Policy", "string", "", 0, "What becomes of it when released"},
                                    TableColumn{"Status", "string", "", 0, "Phase"},
                                    TableColumn{"Claim", "string", "", 0, "The claim it is bound to"},
                                    TableColumn{"StorageClass", "string", "", 0, "Class"},
                                    kAttributesColumn,
                                    TableColumn{"Reason", "string", "", 0, "Why it is in this phase"},
                                    kAgeColumn,
                                    kVolumeModeColumn};

constexpr std::array kClaimColumns{kNameColumn,
                                   TableColumn{"Status", "string", "", 0, "Phase"},
                                   TableColumn{"Volume", "string", "", 0, "The volume it is bound to"},
                                   TableColumn{"Capacity", "string", "", 0, "How much the volume holds"},
                                   TableColumn{"Access Modes", "string", "", 0, "Ways it may be mounted"},
                                   TableColumn{"StorageClass", "string", "", 0, "Class"},
                                   kAttributesColumn,
                                   kAgeColumn,
                                   kVolumeModeColumn};

/// "RWO,ROX": each once, in this order.
std::string access_modes_text(const Json* modes) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort{
      {{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}}};
  std::string text;
  if (modes == nullptr || modes->if_array() == nullptr) return text;
  for (const auto& [mode, shown] : kShort) {
    bool there = false;
    for (const Json& each : *modes->if_array()) there = there || each.string_at({}) == mode;
    if (!there) continue;
    if (!text.empty()) text += ',';
    text += shown;
  }
  return text;
}

std::string phase_text(const Json& object) {
  if (object.at({"metadata", "deletionTimestamp"}) != nullptr) return "Terminating";
  return std::string(object.string_at({"status", "phase"}));
}

std::string attributes_text(const Json& object) {
  return or_else(object.string_at({"spec", "volumeAttributesClassName"}), kUnset);
}

TableRow volume_row(const Json& volume, WallTime now) {
  const std::string_view claim = volume.string_at({"spec", "claimRef", "name"});
  const std::string claim_text =
      claim.empty() ? std::string() : fmt::format("{}/{}", volume.string_at({"spec", "claimRef", "namespace"}), claim);
  return {{volume.string_at({"metadata", "name"}), volume.string_at({"spec", "capacity", "storage"}),
           access_modes_text(volume.at({"spec", "accessModes"})),
           volume.string_at({"spec", "persistentVolumeReclaimPolicy"}), phase_text(volume), claim_text,
           class_name_of(volume), attributes_text(volume), volume.string_at({"status", "reason"}), age_of(volume, now),
           or_else(volume.string_at({"spec", "volumeMode"}), kUnset)},
          nullptr};
}

TableRow claim_row(const Json& claim, WallTime now) {
  const std::string_view volume = claim.string_at({"spec", "volumeName"});
  const bool bound = !volume.empty();
  return {{claim.string_at({"metadata", "name"}), phase_text(claim), volume,
           bound ? claim.string_at({"status", "capacity", "storage"}) : std::string_view(),
           bound ? access_modes_text(claim.at({"status", "accessModes"})) : std::string(), class_name_of(claim),
           attributes_text(claim), age_of(claim, now), or_else(claim.string_at({"spec", "volumeMode"}), kUnset)},
          nullptr};
}

}  // namespace

Resource persistent_volume_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"pv"};
  static const KindHooks kHooks{.set_defaults = default_persistent_volume,
                                .admit_create = admit_persistent_volume,
                                .validate_create = validate_persistent_volume,
                                .admit_update = admit_persistent_volume_update,
                                .validate_update = validate_persistent_volume_update,
                                .columns = kVolumeColumns,
                                .table_row = volume_row};
  return {.version = "v1",
          .plural = "persistentvolumes",
          .singular = "persistentvolume",
          .kind = "PersistentVolume",
          .scope = Scope::kCluster,
          .verbs = kAllVerbs,
          .storage = below("persistentvolumes"),
          .short_names = kShortNames,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .hooks = &kHooks};
}

Resource persistent_volume_claim_kind() {
  static constexpr std::array<std::string_view, 1> kShortNames{"pvc"};
  static const KindHooks kHooks{.set_defaults = default_claim,
                                .admit_create = admit_claim,
                                .validate_create = validate_claim,
                                .confirm_create = confirm_claim_limits,
                                .admit_update = admit_claim_update,
                                .validate_update = validate_claim_update,
                                .columns = kClaimColumns,
                                .table_row = claim_row};
  return {.version = "v1",
          .plural = "persistentvolumeclaims",
          .singular = "persistentvolumeclaim",
          .kind = "PersistentVolumeClaim",
          .verbs = kAllVerbs,
          .storage = below("persistentvolumeclaims"),
          .short_names = kShortNames,
          .subresources = kStatusOnly,
          .status_subresource = true,
          .hooks = &kHooks};
}

}  // namespace spillway::apiserver::kinds
