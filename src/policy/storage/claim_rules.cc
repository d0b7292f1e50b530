#include "policy/storage/claim_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace spillway::storage {

namespace {

using api::Json;

constexpr std::string_view kPending = "Pending";
constexpr std::string_view kBound = "Bound";
constexpr std::string_view kLost = "Lost";
constexpr std::string_view kInTreePrefix = "kubernetes.io/";

StorageWrite claim_write(const api::PersistentVolumeClaim& claim, WriteTo target, Json patch) {
  return {target, claim.metadata.ns, claim.metadata.name, std::move(patch)};
}

/// The claim waits, with a reason.
StorageStep wait(const api::PersistentVolumeClaim& claim, std::optional<StorageEvent> event) {
  StorageStep step{{}, std::move(event)};
  if (claim.status.phase == kPending) return step;
  Json patch = guarded_patch(claim.metadata);
  patch["status"] = Json::object({{"phase", kPending}});
  step.write = claim_write(claim, WriteTo::kClaimStatus, std::move(patch));
  return step;
}

StorageStep lose(const api::PersistentVolumeClaim& claim, std::string_view reason, std::string_view message) {
  StorageStep step{{}, StorageEvent{true, std::string(reason), std::string(message)}};
  if (claim.status.phase == kLost) return step;
  Json patch = guarded_patch(claim.metadata);
  patch["status"] = Json::object({{"phase", kLost}, {"accessModes", Json()}, {"capacity", Json()}});
  step.write = claim_write(claim, WriteTo::kClaimStatus, std::move(patch));
  return step;
}

Json modes_json(const std::vector<std::string>& modes) {
  Json list = Json::array();
  for (const std::string& mode : modes) list.if_array()->push_back(Json(mode));
  return list;
}

std::optional<StorageWrite> name_volume(const api::PersistentVolumeClaim& claim, const std::string& volume) {
  const bool named = claim.volume_name == volume;
  if (named && is_bind_completed(claim)) return std::nullopt;
  Json patch = guarded_patch(claim.metadata);
  Json annotations = Json::object({{api::kClaimBindCompleted, "yes"}});
  if (!named) {
    annotations[api::kBoundByController] = "yes";
    patch["spec"] = Json::object({{"volumeName", volume}});
  }
  patch["metadata"]["annotations"] = std::move(annotations);
  return claim_write(claim, WriteTo::kClaim, std::move(patch));
}

/// The next of four writes: the volume names the claim, its phase, the claim names the volume, its phase.
StorageStep bind(const api::PersistentVolumeClaim& claim, const api::PersistentVolume& volume) {
  if (auto reserved = reserve(volume, claim)) return {std::move(reserved), {}};
  if (volume.status.phase != kBound) {
    Json patch = guarded_patch(volume.metadata);
    patch["status"] = Json::object({{"phase", kBound}, {"message", Json()}, {"reason", Json()}});
    return {StorageWrite{WriteTo::kVolumeStatus, {}, volume.metadata.name, std::move(patch)}, {}};
  }
  if (auto named = name_volume(claim, volume.metadata.name)) return {std::move(named), {}};
  const auto held = volume.capacity.find("storage");
  const auto shown = claim.status.capacity.find("storage");
  const bool same_capacity =
      held == volume.capacity.end() || (shown != claim.status.capacity.end() && shown->second == held->second);
  if (claim.status.phase == kBound && claim.status.access_modes == volume.access_modes && same_capacity) return {};
  Json patch = guarded_patch(claim.metadata);
  patch["status"] = Json::object({{"phase", kBound}, {"accessModes", modes_json(volume.access_modes)}});
  if (held != volume.capacity.end()) {
    patch["status"]["capacity"] = Json::object({{"storage", held->second.to_string()}});
  }
  return {claim_write(claim, WriteTo::kClaimStatus, std::move(patch)), {}};
}

/// The event about a claim for which no volume fits.
StorageEvent why_it_waits(const ClaimView& view) {
  const std::string name = class_of(*view.claim);
  if (name.empty()) {
    return {false, "FailedBinding", "no persistent volumes available for this claim and no storage class is set"};
  }
  if (!view.storage_class) {
    return {true, "ProvisioningFailed", fmt::format("storageclass.storage.k8s.io \"{}\" not found", name)};
  }
  if (waits_for_pod(*view.storage_class) && !view.claim->metadata.annotations.contains(api::kSelectedNode)) {
    if (view.waiting_pods.empty()) {
      return {false, "WaitForFirstConsumer", "waiting for first consumer to be created before binding"};
    }
    return {false, "WaitForPodScheduled", fmt::format("waiting for pod {} to be scheduled", view.waiting_pods)};
  }
  const std::string& provisioner = view.storage_class->provisioner;
  if (provisioner.starts_with(kInTreePrefix)) {
    return {true, "ProvisioningFailed", fmt::format("no volume plugin matched name: {}", provisioner)};
  }
  return {false, "ExternalProvisioning",
          fmt::format("Waiting for a volume to be created either by the external provisioner '{}' or manually by the "
                      "system administrator. If volume creation is delayed, please verify that the provisioner is "
                      "running and correctly registered.",
                      provisioner)};
}

bool is_external(const std::string& provisioner) {
  return !provisioner.empty() && !provisioner.starts_with(kInTreePrefix);
}

/// The write that names the provisioner of the class on the claim; nullopt: the claim names it, or there is none.
std::optional<StorageWrite> name_provisioner(const ClaimView& view) {
  const api::PersistentVolumeClaim& claim = *view.claim;
  if (!view.storage_class || !is_external(view.storage_class->provisioner)) return std::nullopt;
  if (waits_for_pod(*view.storage_class) && !claim.metadata.annotations.contains(api::kSelectedNode)) {
    return std::nullopt;
  }
  const auto names = [&](std::string_view annotation) {
    const auto found = claim.metadata.annotations.find(annotation);
    return found != claim.metadata.annotations.end() && found->second == view.storage_class->provisioner;
  };
  if (names(api::kStorageProvisioner) && names(api::kBetaStorageProvisioner)) return std::nullopt;
  Json patch = guarded_patch(claim.metadata);
  patch["metadata"]["annotations"] = Json::object({{api::kStorageProvisioner, view.storage_class->provisioner},
                                                   {api::kBetaStorageProvisioner, view.storage_class->provisioner}});
  return claim_write(claim, WriteTo::kClaim, std::move(patch));
}

StorageStep decide_unnamed(const ClaimView& view) {
  const api::PersistentVolumeClaim& claim = *view.claim;
  if (names_no_class(claim) && !view.default_class.empty()) {
    Json patch = guarded_patch(claim.metadata);
    patch["spec"] = Json::object({{"storageClassName", view.default_class}});
    return {claim_write(claim, WriteTo::kClaim, std::move(patch)), {}};
  }
  const bool delayed = view.storage_class && waits_for_pod(*view.storage_class);
  const VolumePtr found = find_volume(claim, view.volumes, {.reached = {}, .delayed = delayed, .taken = nullptr});
  if (found) return bind(claim, *found);
  if (auto naming = name_provisioner(view)) return {std::move(naming), why_it_waits(view)};
  return wait(claim, why_it_waits(view));
}

StorageStep decide_named(const ClaimView& view) {
  const api::PersistentVolumeClaim& claim = *view.claim;
  if (!view.named) return wait(claim, {});
  const api::PersistentVolume& volume = *view.named;
  if (!volume.claim_ref) {
    const auto mismatch = mismatch_of(volume, claim);
    if (!mismatch) return bind(claim, volume);
    return wait(claim, StorageEvent{
                           true, "VolumeMismatch",
                           fmt::format("Cannot bind to requested volume \"{}\": {}", volume.metadata.name, *mismatch)});
  }
  if (is_reserved_for(volume, claim)) return bind(claim, volume);
  return wait(claim,
              StorageEvent{true, "FailedBinding",
                           fmt::format("volume \"{}\" already bound to a different claim.", volume.metadata.name)});
}

StorageStep decide_completed(const ClaimView& view) {
  const api::PersistentVolumeClaim& claim = *view.claim;
  if (claim.volume_name.empty()) {
    return lose(claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  }
  if (!view.named) {
    return lose(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  }
  // The annotations of a claim are written by its user; only its status, which other clients write, proves that it was
  // bound.
  if (!view.named->claim_ref && claim.status.phase != kBound && claim.status.phase != kLost) return decide_named(view);
  if (!view.named->claim_ref || is_bound_to(*view.named, claim)) return bind(claim, *view.named);
  return lose(claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
}

}  // namespace

bool is_bind_completed(const api::PersistentVolumeClaim& claim) {
  return claim.metadata.annotations.contains(api::kClaimBindCompleted);
}

bool waits_for_pod(const api::StorageClass& storage_class) {
  return storage_class.volume_binding_mode == api::kWaitForFirstConsumer;
}

StorageStep decide_claim(const ClaimView& view) {
  const api::PersistentVolumeClaim& claim = *view.claim;
  if (is_bind_completed(claim)) return decide_completed(view);
  if (claim.metadata.deletion_timestamp) return {};
  return claim.volume_name.empty() ? decide_unnamed(view) : decide_named(view);
}

}  // namespace spillway::storage
