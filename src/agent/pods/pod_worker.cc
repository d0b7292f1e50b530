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

}  // namespace spillway::agent
