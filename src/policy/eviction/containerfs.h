// The layout of the node's storage, and the containerfs thresholds that follow from it: users cannot configure those.
// Thread: any (pure). Source: spec "Eviction manager", 3.4; KEP-4191 (split image filesystem).
#pragma once

#include "policy/eviction/threshold.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::eviction {

/// A split without a dedicated image filesystem is no real layout; it behaves like a single filesystem.
struct StorageLayout {
  bool dedicated_image_fs = false;
  bool split_container_fs = false;

  bool is_split() const { return dedicated_image_fs && split_container_fs; }

  friend bool operator==(const StorageLayout&, const StorageLayout&) = default;
};

struct DerivedThresholds {
  std::vector<Threshold> thresholds;
  /// "found containerfs.available for hard eviction. ignoring": a configured one was replaced. Empty: none was.
  std::string warning;
};

/// The containerfs thresholds copied from those of the filesystem that holds the containers, separately for hard and
/// soft, bytes and inodes. A configured one is overwritten in place, or dropped if its source does not exist.
DerivedThresholds derive_containerfs(std::vector<Threshold> configured, StorageLayout layout);

}  // namespace spillway::eviction
