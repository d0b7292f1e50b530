#include "agent/contract/kill_grace.h"

#include <algorithm>

namespace spillway::agent {
namespace {

constexpr std::int64_t kWaitMin = 10;

std::int64_t own_grace(const GraceRequest& request, const ContainerStop& stop) {
  if (request.deletion_seconds) return *request.deletion_seconds;
  if (!request.spec_seconds) return kStopSecondsMin;
  if (stop.reason == StopReason::kStartupProbe && stop.startup_probe_seconds) return *stop.startup_probe_seconds;
  if (stop.reason == StopReason::kLivenessProbe && stop.liveness_probe_seconds) return *stop.liveness_probe_seconds;
  return *request.spec_seconds;
}

}  // namespace

EffectiveGrace effective_grace(std::int64_t previous_seconds, const GraceRequest& request) {
  std::int64_t grace = previous_seconds;
  bool applied = false;
  for (const std::optional<std::int64_t>* each : {&request.deletion_seconds, &request.override_seconds}) {
    if (!*each || (grace != 0 && **each >= grace)) continue;
    grace = **each;
    applied = true;
  }
  if (!applied && grace == 0 && request.spec_seconds) grace = *request.spec_seconds;
  grace = std::clamp<std::int64_t>(grace, 1, kGraceSecondsMax);
  return {grace, previous_seconds != 0 && previous_seconds != grace};
}

std::int64_t kill_wait_seconds(const GraceRequest& request) {
  const std::int64_t grace = std::clamp<std::int64_t>(
      request.override_seconds.value_or(request.spec_seconds.value_or(0)), 0, kGraceSecondsMax);
  return std::max(kWaitMin, grace + grace / 2);
}

std::int64_t container_stop_seconds(const GraceRequest& request, const ContainerStop& stop) {
  std::int64_t grace = request.override_seconds.value_or(own_grace(request, stop));
  if (stop.pre_stop_seconds && grace > 0) grace -= std::min(*stop.pre_stop_seconds, grace);
  return std::max(grace, kStopSecondsMin);
}

}  // namespace spillway::agent
