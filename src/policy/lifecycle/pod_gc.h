// Pods that only the garbage collector deletes: those on nodes that are gone, those terminating on a node that cannot
// finish it, and finished ones above a threshold. Thread: any (pure functions). Source: Kubernetes docs, "Pod
// Lifecycle", garbage collection of pods; "Node Shutdowns", out-of-service; spec "Node lifecycle", S13.
#pragma once

#include "api/object/node.h"
#include "api/object/pod.h"

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::lifecycle {

inline constexpr std::string_view kTaintOutOfService = "node.kubernetes.io/out-of-service";

enum class PodGarbage { kTerminated, kOrphaned, kUnscheduled, kOutOfService };

/// "terminated", "orphaned", "unscheduled", "out-of-service": the label of upstream's metrics.
std::string_view to_string(PodGarbage reason);

struct PodToCollect {
  const api::Pod* pod = nullptr;
  PodGarbage reason{};

  friend bool operator==(const PodToCollect&, const PodToCollect&) = default;
};

struct PodGcView {
  std::span<const api::Pod* const> pods;
  /// nullptr: not in the cache.
  std::function<const api::Node*(std::string_view name)> find_node;
  /// Nodes that, as the API server has confirmed, do not exist.
  const std::set<std::string, std::less<>>& gone;
};

/// Order in which finished pods above the threshold are deleted.
enum class FinishedOrder {
  kEvictedFirst,  // the evicted, then the oldest, whose ever they are: as upstream
  kFair,          // the oldest of the owner that has most of them, one after another
};

/// Finished pods that are kept; threshold 0 or less: all of them.
struct FinishedKept {
  std::int64_t threshold = 12500;
  FinishedOrder order = FinishedOrder::kEvictedFirst;
};

/// Pods in the order terminated, orphaned, unscheduled, out-of-service; each once.
std::vector<PodToCollect> pods_to_collect(const PodGcView& view, const FinishedKept& kept);

/// Nodes that pods name and the cache does not have, in order.
std::set<std::string, std::less<>> missing_nodes(const PodGcView& view);

}  // namespace spillway::lifecycle
