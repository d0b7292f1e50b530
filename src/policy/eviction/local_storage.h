// Pods over their own local storage limits: emptyDir sizes, the pod's total, a container's share. They are evicted
// without any threshold being met, all of them in one pass.
// Thread: any (pure). Source: Kubernetes docs, "Local ephemeral storage"; spec "Eviction manager", 9.
#pragma once

#include "policy/eviction/ranking.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::eviction {

struct StorageViolation {
  const api::Pod* pod = nullptr;
  std::string_view metric_label;  // "emptydirfs.limit", "ephemeralpodfs.limit" or "ephemeralcontainerfs.limit"
  std::string what;               // the volume or container; empty for the pod's total
  api::Quantity used;
  api::Quantity limit;
  std::string message;
};

/// At most one violation per pod, in the order of the pods. Pods without stats and critical pods have none; a volume
/// whose usage is unknown is skipped.
std::vector<StorageViolation> find_storage_violations(std::span<const MeasuredPod> pods, StorageLayout layout);

/// `text` in double quotes, as Go's %q prints it.
std::string quoted(std::string_view text);

}  // namespace spillway::eviction
