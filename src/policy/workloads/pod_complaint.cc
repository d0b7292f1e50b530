#include "policy/workloads/pod_complaint.h"

#include <fmt/format.h>

#include <string_view>

namespace spillway::workloads {

namespace {

std::string reason_and_message(std::string reason, const std::string& message) {
  if (!message.empty()) reason += reason.empty() ? message : ": " + message;
  return reason;
}

}  // namespace

std::string why_not_ready(const api::Pod& pod) {
  if (pod.metadata.deletion_timestamp) return "it is being ended";
  for (const api::ContainerStatus& container : pod.status.container_statuses) {
    const api::ContainerState& state = container.state;
    if (state.waiting) return reason_and_message(state.waiting->reason, state.waiting->message);
    if (state.terminated) return reason_and_message(state.terminated->reason, state.terminated->message);
  }
  for (const std::string_view type : {"PodScheduled", "Ready"}) {
    const api::PodCondition* condition = api::find_condition(pod.status.conditions, type);
    if (condition != nullptr && condition->status == "False") {
      return reason_and_message(condition->reason, condition->message);
    }
  }
  return pod.status.phase.empty() ? "Pending" : pod.status.phase;
}

std::string why_failed(const api::Pod& pod) {
  if (!pod.status.reason.empty()) return reason_and_message(pod.status.reason, pod.status.message);
  for (const auto* containers : {&pod.status.init_container_statuses, &pod.status.container_statuses}) {
    for (const api::ContainerStatus& container : *containers) {
      const auto& ended = container.state.terminated;
      if (!ended || ended->exit_code == 0) continue;
      return fmt::format("{} exited with {} ({})", container.name, ended->exit_code,
                         reason_and_message(ended->reason, ended->message));
    }
  }
  return pod.status.message.empty() ? "Failed" : pod.status.message;
}

}  // namespace spillway::workloads
