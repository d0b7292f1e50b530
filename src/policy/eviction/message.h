// The message of an evicted pod's status and event: upstream's, word for word, and its annotations. Thread: any (pure).
// Source: spec "Eviction manager", 8.
#pragma once

#include "api/object/meta.h"
#include "policy/eviction/ranking.h"
#include "policy/eviction/threshold.h"

#include <span>
#include <string>
#include <string_view>

namespace spillway::eviction {

struct EvictionMessage {
  std::string text;  // every part ends in a full stop and a blank, also the last one
  // offending_containers, offending_containers_usage, starved_resource; offending_pod, offending_pod_usage beside a
  // sentence about the whole pod. Empty without stats.
  api::StringMap annotations;

  friend bool operator==(const EvictionMessage&, const EvictionMessage&) = default;
};

/// The beginning of the message of every eviction for a shortage; the resource and ". " follow.
inline constexpr std::string_view kLowOn = "The node was low on resource: ";

/// The first of `thresholds` with that resource and an observation supplies the numbers. A pod that has a memory
/// request of its own and lacks memory is named before its containers, however much it uses.
EvictionMessage eviction_message(std::string_view resource, const MeasuredPod& victim,
                                 std::span<const Threshold> thresholds, const Observations& seen);

}  // namespace spillway::eviction
