#include "agent/pods/pod_worker.h"

#include <algorithm>

namespace spillway::agent {

bool restarts(std::string_view policy, std::int32_t exit_code) {
  if (policy == "Never") return false;
  return policy != "OnFailure" || exit_code != 0;
}

Duration next_back_off(Duration current, Duration ran) {
  if (ran >= kBackOffForgetAfter) current = Duration{};
  if (current == Duration{}) return kBackOffMin;
  return std::min(current * 2, kBackOffMax);
}

std::int64_t effective_grace_seconds(std::int64_t previous, const std::optional<std::int64_t>& deletion_grace,
                                     const std::optional<std::int64_t>& override_grace,
                                     const std::optional<std::int64_t>& spec_grace) {
  std::int64_t grace = previous;
  bool applied = false;
  for (const std::optional<std::int64_t>* each : {&deletion_grace, &override_grace}) {
    if (!*each || (grace != 0 && **each >= grace)) continue;
    grace = **each;
    applied = true;
  }
  if (!applied && grace == 0 && spec_grace) grace = *spec_grace;
  return std::clamp<std::int64_t>(grace, 1, kGraceSecondsMax);
}

}  // namespace spillway::agent
