#include "agent/pod_state/forced_end.h"

#include "agent/contract/kill_grace.h"
#include "agent/node/shutdown_engine.h"

#include <algorithm>

namespace spillway::agent {

ForcedEnd evicted(const eviction::EvictPod& action) {
  return {.ending = {.phase = "Failed",
                     .reason = "Evicted",
                     .message = action.message,
                     .disruption = action.disruption_target ? std::optional(action.message) : std::nullopt},
          .grace_period_seconds = action.grace_period_seconds,
          .frees_disk = frees_disk(action)};
}

bool frees_disk(const eviction::EvictPod& action) {
  const auto signal = eviction::parse_signal(action.metric_label);
  return signal && eviction::condition_of(*signal) == eviction::Condition::kDiskPressure;
}

ForcedEnd shut_down_with(std::int64_t grace_seconds) {
  return {.ending = {.phase = "Failed",
                     .reason = std::string(kShutdownReason),
                     .message = std::string(kShutdownMessage),
                     .disruption = std::string(kShutdownMessage)},
          .grace_period_seconds = grace_seconds};
}

ForcedEnd deadline_exceeded() {
  return {.ending = {.phase = "Failed",
                     .reason = std::string(kDeadlineExceeded),
                     .message = std::string(kDeadlineExceededMessage),
                     .disruption = std::nullopt}};
}

std::optional<Instant> active_deadline(const api::Pod& pod, Instant since) {
  if (!pod.spec.active_deadline_seconds) return std::nullopt;
  return since + seconds(std::clamp<std::int64_t>(*pod.spec.active_deadline_seconds, 0, kGraceSecondsMax));
}

}  // namespace spillway::agent
