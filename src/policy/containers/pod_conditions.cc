#include "policy/containers/pod_conditions.h"

#include "api/object/probe.h"
#include "policy/containers/restart_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spillway::containers {
namespace {

using api::PodCondition;

constexpr std::string_view kUnknownStatuses = "UnknownContainerStatuses";

PodCondition condition(std::string_view type, bool holds, std::string_view reason = {}, std::string message = {}) {
  return {.type = std::string(type),
          .status = holds ? "True" : "False",
          .reason = std::string(reason),
          .message = std::move(message),
          .last_probe_time = {},
          .last_transition_time = {}};
}

const api::ContainerStatus* find(const std::vector<api::ContainerStatus>& statuses, std::string_view name) {
  const auto found = std::ranges::find(statuses, name, &api::ContainerStatus::name);
  return found == statuses.end() ? nullptr : &*found;
}

/// "containers with unknown status: [a b], containers with unready status: [c]"; empty: no message.
std::string message_of(const std::vector<std::string>& unknown, std::string_view word,
                       const std::vector<std::string>& others) {
  std::string text;
  if (!unknown.empty()) text = fmt::format("containers with unknown status: [{}]", fmt::join(unknown, " "));
  if (others.empty()) return text;
  if (!text.empty()) text += ", ";
  return text + fmt::format("containers with {} status: [{}]", word, fmt::join(others, " "));
}

PodCondition initialized(const api::Pod& pod, const api::PodStatus& status) {
  constexpr std::string_view kType = "Initialized";
  if (status.container_statuses.empty() && !pod.spec.init_containers.empty())
    return condition(kType, false, kUnknownStatuses);
  std::vector<std::string> unknown;
  std::vector<std::string> incomplete;
  for (const api::Container& container : pod.spec.init_containers) {
    const api::ContainerStatus* found = find(status.init_container_statuses, container.name);
    if (found == nullptr) {
      unknown.push_back(container.name);
    } else if (!(api::is_sidecar(container) ? found->started.value_or(false) : found->ready)) {
      incomplete.push_back(container.name);
    }
  }
  if (status.phase == "Succeeded" && unknown.empty()) return condition(kType, true, "PodCompleted");
  const bool passed = std::ranges::any_of(status.container_statuses, [](const api::ContainerStatus& each) {
    return each.started.value_or(false) || each.state.running || each.state.terminated;
  });
  std::string message = message_of(unknown, "incomplete", incomplete);
  if (passed || message.empty()) return condition(kType, true);
  return condition(kType, false, "ContainersNotInitialized", std::move(message));
}

PodCondition containers_ready(const api::Pod& pod, const api::PodStatus& status) {
  constexpr std::string_view kType = "ContainersReady";
  if (status.container_statuses.empty()) return condition(kType, false, kUnknownStatuses);
  std::vector<std::string> unknown;
  std::vector<std::string> unready;
  const auto check = [&](const api::Container& container, const std::vector<api::ContainerStatus>& statuses) {
    const api::ContainerStatus* found = find(statuses, container.name);
    if (found == nullptr) {
      unknown.push_back(container.name);
    } else if (!found->ready) {
      unready.push_back(container.name);
    }
  };
  for (const api::Container& container : pod.spec.init_containers) {
    if (api::is_sidecar(container)) check(container, status.init_container_statuses);
  }
  for (const api::Container& container : pod.spec.containers) check(container, status.container_statuses);
  if (status.phase == "Succeeded" && unknown.empty()) return condition(kType, false, "PodCompleted");
  if (status.phase == "Failed") return condition(kType, false, "PodFailed");
  std::string message = message_of(unknown, "unready", unready);
  if (message.empty()) return condition(kType, true);
  return condition(kType, false, "ContainersNotReady", std::move(message));
}

PodCondition ready(const api::Pod& pod, const PodCondition& containers) {
  if (containers.status != "True") {
    PodCondition same = containers;
    same.type = "Ready";
    return same;
  }
  std::vector<std::string> problems;
  for (const std::string& gate : api::readiness_gates_of(pod)) {
    const PodCondition* found = api::find_condition(pod.status.conditions, gate);
    if (found == nullptr) {
      problems.push_back(fmt::format("corresponding condition of pod readiness gate \"{}\" does not exist.", gate));
    } else if (found->status != "True") {
      problems.push_back(
          fmt::format("the status of pod readiness gate \"{}\" is not \"True\", but {}", gate, found->status));
    }
  }
  if (problems.empty()) return condition("Ready", true);
  return condition("Ready", false, "ReadinessGatesNotReady", fmt::format("{}", fmt::join(problems, ", ")));
}

/// True while containers are ended for that rule, or have ended and not begun again.
bool restarts_all(const api::Container& container, const api::ContainerStatus* status) {
  if (status == nullptr) return false;
  if (status->state.waiting) return status->state.waiting->reason == kRestartingAll;
  const auto& ended = status->state.terminated;
  return ended && ended->reason != kRestartingAll && restarts_all_after(container, ended->exit_code);
}

PodCondition all_containers_restarting(const api::Pod& pod, const api::PodStatus& status) {
  const auto any = [](const std::vector<api::Container>& containers,
                      const std::vector<api::ContainerStatus>& statuses) {
    return std::ranges::any_of(
        containers, [&](const api::Container& each) { return restarts_all(each, find(statuses, each.name)); });
  };
  const bool restarting = any(pod.spec.init_containers, status.init_container_statuses) ||
                          any(pod.spec.containers, status.container_statuses);
  if (!restarting) return condition(kAllContainersRestarting, false);
  return condition(kAllContainersRestarting, true, "RestartAllContainersStarted",
                   "container exited with restart policy rule");
}

bool is_six(std::string_view address) {
  return address.find(':') != std::string_view::npos;
}

}  // namespace

std::vector<PodCondition> pod_conditions(const api::Pod& pod, const api::PodStatus& status, bool has_sandbox) {
  const PodCondition containers = containers_ready(pod, status);
  std::vector<PodCondition> conditions = {condition("PodReadyToStartContainers", has_sandbox), initialized(pod, status),
                                          ready(pod, containers), containers, condition("PodScheduled", true)};
  if (api::may_restart_all(pod.spec)) conditions.push_back(all_containers_restarting(pod, status));
  return conditions;
}

std::vector<std::string> pod_addresses(const api::Pod& pod, const std::vector<std::string>& sandbox,
                                       const std::vector<std::string>& node) {
  if (pod.spec.host_network) return node;
  std::vector<std::string> made = sandbox;
  if (node.empty()) return made;
  std::ranges::stable_partition(made, [&](const std::string& each) { return is_six(each) == is_six(node.front()); });
  return made;
}

}  // namespace spillway::containers
