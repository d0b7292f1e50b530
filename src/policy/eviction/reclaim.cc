#include "policy/eviction/reclaim.h"

namespace spillway::eviction {

std::string_view to_string(ReclaimAction action) {
  return action == ReclaimAction::kContainers ? "containers" : "images";
}

std::vector<ReclaimAction> reclaim_actions(Signal signal, StorageLayout layout) {
  if (condition_of(signal) != Condition::kDiskPressure) return {};
  const std::string_view name = to_string(signal);
  if (layout.is_split()) {
    return {name.starts_with("imagefs") ? ReclaimAction::kImages : ReclaimAction::kContainers};
  }
  if (layout.dedicated_image_fs && name.starts_with("nodefs")) return {};
  return {ReclaimAction::kContainers, ReclaimAction::kImages};
}

}  // namespace spillway::eviction
