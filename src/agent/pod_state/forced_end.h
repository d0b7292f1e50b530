// The end of a pod that does not end by itself: evicted, at a shutdown of its node, or at its deadline. (The end of a
// preempted pod is policy/admission/answer.h's.)
// Thread: any (pure). Source: Kubernetes docs, "Node-pressure Eviction", "Node Shutdowns"; spec "Pod lifecycle", 10.7.
#pragma once

#include "base/time.h"
#include "policy/admission/answer.h"
#include "policy/eviction/decide.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace spillway::agent {

struct ForcedEnd {
  admission::Ending ending;
  std::optional<std::int64_t> grace_period_seconds = {};  // overrides the pod's own
  bool frees_disk = false;                                // the end frees disk space
};

/// True if the pod is evicted for its disk usage. Then its data have to be deleted before another pod is evicted.
bool frees_disk(const eviction::EvictPod& action);

inline constexpr std::string_view kDeadlineExceeded = "DeadlineExceeded";
inline constexpr std::string_view kDeadlineExceededMessage =
    "Pod was active on the node longer than the specified deadline";

ForcedEnd evicted(const eviction::EvictPod& action);
ForcedEnd shut_down_with(std::int64_t grace_seconds);
/// Ends the pod with its own grace.
ForcedEnd deadline_exceeded();

/// The time at which a pod that has been active since `since` exceeds its deadline.
std::optional<Instant> active_deadline(const api::Pod& pod, Instant since);

}  // namespace spillway::agent
