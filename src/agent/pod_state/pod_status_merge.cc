#include "agent/pod_state/pod_status_merge.h"

#include "policy/containers/pod_conditions.h"
#include "policy/containers/pod_resize.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace spillway::agent {
namespace {

using api::PodCondition;

constexpr std::array<std::string_view, 8> kOwn{containers::kPodResizePending,
                                               containers::kPodResizeInProgress,
                                               "PodReadyToStartContainers",
                                               "Initialized",
                                               "Ready",
                                               "ContainersReady",
                                               "PodScheduled",
                                               containers::kAllContainersRestarting};
constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

bool is_own(const PodCondition& condition) {
  return std::ranges::find(kOwn, condition.type) != kOwn.end();
}

bool is_terminal_phase(std::string_view phase) {
  return phase == "Succeeded" || phase == "Failed";
}

PodCondition* find(std::vector<PodCondition>& conditions, std::string_view type) {
  const auto it = std::ranges::find(conditions, type, &PodCondition::type);
  return it == conditions.end() ? nullptr : &*it;
}

void put(std::vector<PodCondition>& conditions, PodCondition condition) {
  if (PodCondition* existing = find(conditions, condition.type)) {
    *existing = std::move(condition);
  } else {
    conditions.push_back(std::move(condition));
  }
}

/// Stamped now, or with the time of the condition that had this status already.
PodCondition stamped(PodCondition condition, const std::vector<PodCondition>& before, WallTime now) {
  const PodCondition* old = api::find_condition(before, condition.type);
  const bool same = old != nullptr && old->status == condition.status;
  condition.last_transition_time = same ? old->last_transition_time : now;
  return condition;
}

bool is_true(const std::vector<PodCondition>& conditions, std::string_view type) {
  const PodCondition* found = api::find_condition(conditions, type);
  return found != nullptr && found->status == "True";
}

void end_readiness(api::PodStatus& status, WallTime now) {
  if (!is_true(status.conditions, "Ready") && !is_true(status.conditions, "ContainersReady")) return;
  for (const std::string_view type : {"ContainersReady", "Ready"}) {
    PodCondition ended{.type = std::string(type),
                       .status = "False",
                       .reason = status.phase == "Succeeded" ? "PodCompleted" : "PodFailed",
                       .message = {},
                       .last_probe_time = {},
                       .last_transition_time = {},
                       .observed_generation = status.observed_generation};
    put(status.conditions, stamped(std::move(ended), status.conditions, now));
  }
}

/// The reported restart count never falls: an earlier agent process may have counted restarts that this one has not
/// seen.
void keep_restarts(const std::vector<api::ContainerStatus>& reported, std::vector<api::ContainerStatus>& merged) {
  for (api::ContainerStatus& each : merged) {
    const auto before = std::ranges::find(reported, each.name, &api::ContainerStatus::name);
    if (before != reported.end()) each.restart_count = std::max(each.restart_count, before->restart_count);
  }
}

}  // namespace

api::PodStatus merge_status(const api::PodStatus& reported, const api::PodStatus& wanted, RunningContainers running,
                            WallTime now) {
  api::PodStatus merged = wanted;
  merged.observed_generation = std::max(reported.observed_generation, wanted.observed_generation);
  merged.conditions.clear();
  for (const PodCondition& condition : reported.conditions) {
    if (!is_own(condition)) merged.conditions.push_back(condition);
  }
  const bool ends = !is_terminal_phase(reported.phase) && is_terminal_phase(wanted.phase);
  for (const PodCondition& condition : wanted.conditions) {
    if (is_own(condition)) {
      merged.conditions.push_back(condition);
    } else if (condition.type == kDisruptionTarget && ends && running == RunningContainers::kNone) {
      put(merged.conditions, stamped(condition, reported.conditions, now));
    }
  }
  if (ends && running == RunningContainers::kPossible) {
    merged.phase = reported.phase;
    merged.reason = reported.reason;
    merged.message = reported.message;
  }
  if (is_terminal_phase(merged.phase)) end_readiness(merged, now);
  keep_restarts(reported.container_statuses, merged.container_statuses);
  keep_restarts(reported.init_container_statuses, merged.init_container_statuses);
  return merged;
}

}  // namespace spillway::agent
