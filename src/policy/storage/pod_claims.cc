#include "policy/storage/pod_claims.h"

#include "api/object/pod_volumes.h"
#include "policy/storage/claim_rules.h"
#include "policy/storage/volume_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::storage {

namespace {

/// True if the class names a provisioner. Its ability to make the volume is for the controller of claims to find out.
bool makes_volumes(const api::StorageClass& storage_class) {
  return !storage_class.provisioner.empty() && storage_class.provisioner != api::kNoProvisioner;
}

}  // namespace

PodClaims claims_for(const api::Pod& pod, const StorageLookup& lookup) {
  PodClaims found;
  found.reaches = lookup.reaches;
  const auto refuse = [&found](std::string problem) {
    found.problem = std::move(problem);
    return found;
  };
  bool immediate = false;
  for (const std::string& name : api::claims_of(pod)) {
    const auto claim = lookup.claim(pod.metadata.ns, name);
    if (!claim) return refuse(fmt::format("persistentvolumeclaim \"{}\" not found", name));
    if (claim->status.phase == "Lost") {
      return refuse(fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
                                claim->volume_name));
    }
    if (claim->metadata.deletion_timestamp) {
      return refuse(fmt::format("persistentvolumeclaim \"{}\" is being deleted", name));
    }
    if (std::ranges::find(claim->access_modes, api::kReadWriteOncePod) != claim->access_modes.end()) {
      found.exclusive.push_back(name);
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
      found.unbound.push_back({claim, lookup.volumes_for(*claim), storage_class});
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
  const auto refuse = [&plan] {
    plan = {.refusal = "node(s) didn't find available persistent volumes to bind", .bindings = {}, .provisions = {}};
    return plan;
  };
  std::set<std::string> gone = taken;
  for (const UnboundClaim& each : claims.unbound) {
    const std::string selected = selected_node(*each.claim);
    if (!selected.empty() && selected != node.name) return refuse();
    const VolumePtr volume =
        selected.empty() ? find_volume(*each.claim, each.volumes, {.reached = reached, .delayed = true, .taken = &gone})
                         : nullptr;
    if (volume) {
      gone.insert(volume->metadata.name);
      plan.bindings.emplace_back(each.claim, volume);
    } else if (makes_volumes(*each.storage_class) && allows_node(*each.storage_class, node)) {
      plan.provisions.push_back(each.claim);
    } else {
      return refuse();
    }
  }
  return plan;
}

std::optional<StorageWrite> ask_for_volume(const api::PersistentVolumeClaim& claim, const std::string& node) {
  if (selected_node(claim) == node) return std::nullopt;
  api::Json patch = guarded_patch(claim.metadata);
  patch["metadata"]["annotations"] = api::Json::object({{api::kSelectedNode, node}});
  return StorageWrite{WriteTo::kClaim, claim.metadata.ns, claim.metadata.name, std::move(patch)};
}

std::string selected_node(const api::PersistentVolumeClaim& claim) {
  const auto found = claim.metadata.annotations.find(api::kSelectedNode);
  return found == claim.metadata.annotations.end() ? std::string() : found->second;
}

}  // namespace spillway::storage
