#include "policy/storage/pod_claims.h"

#include "policy/storage/claim_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::storage {

namespace {

constexpr std::string_view kClaimVolume = "persistentVolumeClaim";

}  // namespace

std::vector<std::string> claims_of(const api::Pod& pod) {
  std::vector<std::string> names;
  const auto add = [&names](std::string name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  };
  for (const api::Volume& volume : pod.spec.volumes) {
    if (volume.source == kClaimVolume) add(std::string(volume.definition.string_at({"claimName"})));
    if (volume.source == "ephemeral") add(fmt::format("{}-{}", pod.metadata.name, volume.name));
  }
  return names;
}

PodClaims claims_for(const api::Pod& pod, const StorageLookup& lookup) {
  PodClaims found;
  found.reaches = lookup.reaches;
  const auto refuse = [&found](std::string problem) {
    found.problem = std::move(problem);
    return found;
  };
  bool immediate = false;
  for (const std::string& name : claims_of(pod)) {
    const auto claim = lookup.claim(pod.metadata.ns, name);
    if (!claim) return refuse(fmt::format("persistentvolumeclaim \"{}\" not found", name));
    if (claim->status.phase == "Lost") {
      return refuse(fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
                                claim->volume_name));
    }
    if (claim->metadata.deletion_timestamp) {
      return refuse(fmt::format("persistentvolumeclaim \"{}\" is being deleted", name));
    }
    if (!claim->volume_name.empty() && is_bind_completed(*claim) && claim->status.phase == "Bound") {
      const VolumePtr volume = lookup.volume(claim->volume_name);
      if (!volume) {
        return refuse(fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
                                  claim->volume_name));
      }
      found.bound.push_back(volume);
      continue;
    }
    const auto storage_class = lookup.storage_class(class_of(*claim));
    if (claim->volume_name.empty() && storage_class && waits_for_pod(*storage_class)) {
      found.unbound.emplace_back(claim, lookup.volumes_for(*claim));
    } else {
      immediate = true;
    }
  }
  if (immediate) return refuse("pod has unbound immediate PersistentVolumeClaims");
  return found;
}

ClaimPlan plan_claims(const PodClaims& claims, const api::ObjectMeta& node, const std::set<std::string>& taken) {
  ClaimPlan plan;
  const auto reached = [&](const api::PersistentVolume& volume) { return claims.reaches(volume, node); };
  if (!std::ranges::all_of(claims.bound, [&](const VolumePtr& volume) { return reached(*volume); })) {
    plan.refusal = "node(s) had volume node affinity conflict";
    return plan;
  }
  std::set<std::string> gone = taken;
  for (const auto& [claim, volumes] : claims.unbound) {
    const VolumePtr volume = find_volume(*claim, volumes, {.reached = reached, .delayed = true, .taken = &gone});
    if (!volume) {
      plan.bindings.clear();
      plan.refusal = "node(s) didn't find available persistent volumes to bind";
      return plan;
    }
    gone.insert(volume->metadata.name);
    plan.bindings.emplace_back(claim, volume);
  }
  return plan;
}

}  // namespace spillway::storage
