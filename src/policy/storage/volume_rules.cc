#include "policy/storage/volume_rules.h"

#include "policy/storage/volume_match.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace spillway::storage {

namespace {

using api::Json;

StorageStep to_phase(const api::PersistentVolume& volume, std::string_view phase, std::string_view message = {},
                     std::optional<StorageEvent> event = {}) {
  if (volume.status.phase == phase && volume.status.message == message) return {};
  Json patch = guarded_patch(volume.metadata);
  patch["status"] =
      Json::object({{"phase", phase}, {"message", message.empty() ? Json() : Json(message)}, {"reason", Json()}});
  return {StorageWrite{WriteTo::kVolumeStatus, {}, volume.metadata.name, std::move(patch)}, std::move(event)};
}

/// Unbinds the claim from the volume; a volume that a user reserved stays reserved for a claim of that name.
StorageStep unbind(const api::PersistentVolume& volume) {
  Json patch = guarded_patch(volume.metadata);
  if (volume.metadata.annotations.contains(api::kBoundByController)) {
    patch["metadata"]["annotations"] = Json::object({{api::kBoundByController, Json()}});
    patch["spec"] = Json::object({{"claimRef", Json()}});
  } else {
    patch["spec"] = Json::object({{"claimRef", Json::object({{"uid", Json()}, {"resourceVersion", Json()}})}});
  }
  return {StorageWrite{WriteTo::kVolume, {}, volume.metadata.name, std::move(patch)}, {}};
}

/// Applies the reclaim policy of a released volume. The data on the volume is never deleted.
StorageStep reclaim(const api::PersistentVolume& volume) {
  if (volume.status.phase == "Failed" || volume.metadata.annotations.contains(api::kProvisionedBy)) return {};
  const auto fail = [&](std::string_view reason, std::string message) {
    return to_phase(volume, "Failed", message, StorageEvent{true, std::string(reason), message});
  };
  if (volume.reclaim_policy == "Delete") {
    return fail("VolumeFailedDelete",
                fmt::format("error getting deleter volume plugin for volume \"{}\": no deletable volume plugin matched",
                            volume.metadata.name));
  }
  if (volume.reclaim_policy == "Recycle") {
    return fail("VolumeFailedRecycle", "No recycler plugin found for the volume!");
  }
  return {};
}

}  // namespace

VolumeStep decide_volume(const VolumeView& view) {
  const api::PersistentVolume& volume = *view.volume;
  if (!volume.claim_ref || volume.claim_ref->uid.empty()) return {to_phase(volume, "Available"), false};
  if (view.claim != nullptr) {
    if (view.claim->volume_name.empty()) return {};  // the claim's turn
    if (view.claim->volume_name == volume.metadata.name) return {to_phase(volume, "Bound"), false};
    return {unbind(volume), false};
  }
  if (volume.status.phase == "Released" || volume.status.phase == "Failed") return {reclaim(volume), false};
  if (!view.claim_is_gone) return {{}, true};
  return {to_phase(volume, "Released"), false};
}

}  // namespace spillway::storage
