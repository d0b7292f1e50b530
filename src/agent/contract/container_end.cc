#include "agent/contract/container_end.h"

#include <string>

namespace spillway::agent {
namespace {

std::string exit_reason(const ContainerExited& event) {
  if (!event.reason.empty()) return event.reason;
  if (event.oom_killed) return "OOMKilled";
  return event.exit_code == 0 ? "Completed" : "Error";
}

}  // namespace

api::ContainerState::Terminated terminated_by(const ContainerExited& event) {
  api::ContainerState::Terminated ended;
  ended.exit_code = event.exit_code;
  ended.signal = event.signal;
  ended.reason = exit_reason(event);
  ended.message = event.message;
  ended.started_at = event.started_at;
  ended.finished_at = event.finished_at;
  ended.container_id = event.container_id;
  return ended;
}

}  // namespace spillway::agent
