#include "policy/storage/volume_match.h"

#include "api/object/node_affinity.h"
#include "api/object/selector.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace spillway::storage {

namespace {

constexpr std::string_view kStorage = "storage";
constexpr std::string_view kFilesystem = "Filesystem";
constexpr std::string_view kAvailable = "Available";

std::string_view mode_of(const std::string& mode) {
  return mode.empty() ? kFilesystem : std::string_view(mode);
}

api::Quantity amount(const api::ResourceList& amounts) {
  const auto found = amounts.find(kStorage);
  return found == amounts.end() ? api::Quantity() : found->second;
}

bool offers_modes(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim) {
  return std::ranges::all_of(claim.access_modes, [&](const std::string& mode) {
    return std::ranges::find(volume.access_modes, mode) != volume.access_modes.end();
  });
}

std::string class_name(const api::ObjectMeta& meta, std::string_view field) {
  const auto annotated = meta.annotations.find(api::kBetaStorageClass);
  return annotated == meta.annotations.end() ? std::string(field) : annotated->second;
}

/// True if any claim of that class may get the volume: it is available, of the class, and has the labels of the
/// selector.
bool is_candidate(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim,
                  const std::optional<api::LabelSelector>& selector) {
  return volume.status.phase == kAvailable && !volume.claim_ref && offers_modes(volume, claim) &&
         class_of(volume) == class_of(claim) && (!selector || selector->matches(volume.metadata.labels));
}

}  // namespace

std::string class_of(const api::PersistentVolumeClaim& claim) {
  return class_name(claim.metadata, claim.storage_class_name.value_or(std::string()));
}

std::string class_of(const api::PersistentVolume& volume) {
  return class_name(volume.metadata, volume.storage_class_name);
}

bool names_no_class(const api::PersistentVolumeClaim& claim) {
  return !claim.storage_class_name && !claim.metadata.annotations.contains(api::kBetaStorageClass);
}

bool is_reserved_for(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim) {
  return volume.claim_ref && volume.claim_ref->ns == claim.metadata.ns &&
         volume.claim_ref->name == claim.metadata.name &&
         (volume.claim_ref->uid.empty() || volume.claim_ref->uid == claim.metadata.uid);
}

bool is_bound_to(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim) {
  return is_reserved_for(volume, claim) && volume.claim_ref->uid == claim.metadata.uid;
}

std::optional<std::string> mismatch_of(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim) {
  if (amount(volume.capacity) < amount(claim.requests)) return "requested PV is too small";
  if (class_of(volume) != class_of(claim)) return "storageClassName does not match";
  if (mode_of(volume.volume_mode) != mode_of(claim.volume_mode)) return "incompatible volumeMode";
  if (!offers_modes(volume, claim)) return "incompatible accessMode";
  return std::nullopt;
}

bool is_reached_from(const api::PersistentVolume& volume, const api::ObjectMeta& node) {
  if (volume.required_nodes.is_null()) return true;
  const Result<bool> matches = api::parse_node_selector(volume.required_nodes).matches(node);
  return matches && *matches;
}

VolumePtr find_volume(const api::PersistentVolumeClaim& claim, const std::vector<VolumePtr>& volumes,
                      const MatchRules& rules) {
  std::optional<api::LabelSelector> selector;
  if (!claim.selector.is_null()) {
    Result<api::LabelSelector> parsed = api::label_selector_from_json(&claim.selector);
    if (!parsed) return nullptr;
    selector = *std::move(parsed);
  }
  VolumePtr best;
  const auto rank = [](const api::PersistentVolume& volume) {
    return std::tuple(volume.access_modes.size(), amount(volume.capacity), std::string_view(volume.metadata.name));
  };
  const auto reached = [&rules](const VolumePtr& volume) { return !rules.reached || rules.reached(*volume); };
  for (const VolumePtr& volume : volumes) {
    if (rules.taken != nullptr && rules.taken->contains(volume->metadata.name)) continue;
    if (volume->claim_ref && !is_reserved_for(*volume, claim)) continue;
    if (amount(volume->capacity) < amount(claim.requests)) continue;
    if (mode_of(volume->volume_mode) != mode_of(claim.volume_mode)) continue;
    if (volume->metadata.deletion_timestamp) continue;
    if (is_reserved_for(*volume, claim)) return reached(volume) ? volume : nullptr;
    if ((!rules.reached && rules.delayed) || !is_candidate(*volume, claim, selector)) continue;
    if ((!best || rank(*volume) < rank(*best)) && reached(volume)) best = volume;
  }
  return best;
}

api::Json guarded_patch(const api::ObjectMeta& meta) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", meta.uid}, {"resourceVersion", meta.resource_version}})}});
}

std::optional<StorageWrite> reserve(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim) {
  if (is_bound_to(volume, claim)) return std::nullopt;
  api::Json patch = guarded_patch(volume.metadata);
  if (!volume.claim_ref) {
    patch["metadata"]["annotations"] = api::Json::object({{api::kBoundByController, "yes"}});
  }
  patch["spec"] =
      api::Json::object({{"claimRef", api::Json::object({{"apiVersion", "v1"},
                                                         {"kind", "PersistentVolumeClaim"},
                                                         {"namespace", claim.metadata.ns},
                                                         {"name", claim.metadata.name},
                                                         {"uid", claim.metadata.uid},
                                                         {"resourceVersion", claim.metadata.resource_version}})}});
  return StorageWrite{WriteTo::kVolume, {}, volume.metadata.name, std::move(patch)};
}

}  // namespace spillway::storage
