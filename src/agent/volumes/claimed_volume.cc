#include "agent/volumes/claimed_volume.h"

#include "policy/storage/volume_match.h"

#include <utility>

namespace spillway::agent {
namespace {

constexpr std::string_view kClaimSource = "persistentVolumeClaim";

}  // namespace

std::optional<std::string> claim_name_of(const api::Volume& volume) {
  if (volume.source != kClaimSource) return std::nullopt;
  return std::string(volume.definition.string_at({"claimName"}));
}

Result<std::string> volume_named_by(const api::PersistentVolumeClaim& claim) {
  if (claim.metadata.deletion_timestamp) return make_error(ErrorCode::kConflict, "PVC is being deleted");
  if (claim.status.phase != "Bound") return make_error(ErrorCode::kConflict, "PVC is not bound");
  if (claim.volume_name.empty()) return make_error(ErrorCode::kConflict, "PVC has empty pvc.Spec.VolumeName");
  return claim.volume_name;
}

Outcome check_claimed(const api::PersistentVolume& volume, const api::PersistentVolumeClaim& claim) {
  if (!volume.claim_ref) {
    return make_error(
        ErrorCode::kConflict,
        "found PV object {} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim",
        volume.metadata.name);
  }
  if (!storage::is_bound_to(volume, claim)) {
    return make_error(ErrorCode::kConflict,
                      "found PV object {} but its pv.Spec.ClaimRef.UID {} does not point to claim.UID {}",
                      volume.metadata.name, volume.claim_ref->uid, claim.metadata.uid);
  }
  return {};
}

Outcome check_volume_mode(const api::PersistentVolume& volume, const std::string& pod_volume) {
  if (volume.volume_mode != "Block") return {};
  return invalid({}, "volume {} has volumeMode Block, but is specified in volumeMounts", pod_volume);
}

Outcome check_node(const api::PersistentVolume& volume, const api::ObjectMeta& node) {
  if (storage::is_reached_from(volume, node)) return {};
  return invalid({}, "no matching NodeSelectorTerms");
}

Result<VolumeSetup> setup_of_claimed(const api::Pod& pod, const std::string& pod_volume,
                                     const api::PersistentVolume& volume) {
  VolumeSetup setup{.name = pod_volume, .plugin = "host-path", .content = {}, .fs_group = {}};
  if (!volume.host_path.is_null()) {
    setup.content = HostPath{.path = std::string(volume.host_path.string_at({"path"})),
                             .type = std::string(volume.host_path.string_at({"type"}))};
  } else if (!volume.local.is_null()) {
    setup.plugin = "local-volume";
    setup.content = LocalDirectory{.path = std::string(volume.local.string_at({"path"}))};
    if (pod.spec.security.fs_group) setup.fs_group = static_cast<std::uint32_t>(*pod.spec.security.fs_group);
  } else {
    return invalid({}, "no volume plugin matched");
  }
  return setup;
}

}  // namespace spillway::agent
