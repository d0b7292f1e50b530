#include "policy/containers/pod_phase.h"

#include <algorithm>

namespace spillway::containers {
namespace {

struct Tally {
  int pending_init = 0;
  int pending_sidecars = 0;
  int failed_init = 0;
  int unknown = 0;
  int running = 0;
  int waiting = 0;
  int stopped = 0;
  int succeeded = 0;
  bool any_regular_started = false;
};

const api::ContainerStatus* find(std::span<const api::ContainerStatus> statuses, std::string_view name) {
  const auto found = std::ranges::find(statuses, name, &api::ContainerStatus::name);
  return found == statuses.end() ? nullptr : &*found;
}

void count_init(const api::ContainerStatus* status, Tally& tally) {
  if (status == nullptr || status->state.running) {
    ++tally.pending_init;
    return;
  }
  const auto& ended = status->state.terminated ? status->state.terminated : status->last_state.terminated;
  if (status->state.terminated || (status->state.waiting && ended)) {
    if (ended->exit_code != 0) ++tally.failed_init;
  } else {
    ++tally.pending_init;
  }
}

void count_sidecar(const api::ContainerStatus* status, Tally& tally) {
  if (status == nullptr) {
    ++tally.unknown;
  } else if (status->state.running) {
    if (!status->started.value_or(false)) ++tally.pending_sidecars;
    ++tally.running;
  } else if (status->state.terminated) {
    return;  // a stopped sidecar says nothing about the pod
  } else if (status->state.waiting) {
    if (status->last_state.terminated) return;
    ++tally.pending_sidecars;
    ++tally.waiting;
  } else {
    ++tally.pending_sidecars;
    ++tally.unknown;
  }
}

void count_regular(const api::ContainerStatus* status, Tally& tally) {
  if (status == nullptr) {
    ++tally.unknown;
    return;
  }
  if (status->state.running || status->state.terminated) tally.any_regular_started = true;
  if (status->state.running) {
    ++tally.running;
  } else if (status->state.terminated) {
    ++tally.stopped;
    if (status->state.terminated->exit_code == 0) ++tally.succeeded;
  } else if (status->state.waiting) {
    ++(status->last_state.terminated ? tally.stopped : tally.waiting);
  } else {
    ++tally.unknown;
  }
}

}  // namespace

std::string_view phase_of(const api::Pod& pod, std::span<const api::ContainerStatus> statuses, PodProgress progress) {
  Tally tally;
  for (const api::Container& container : pod.spec.init_containers) {
    const api::ContainerStatus* status = find(statuses, container.name);
    api::is_sidecar(container) ? count_sidecar(status, tally) : count_init(status, tally);
  }
  for (const api::Container& container : pod.spec.containers) count_regular(find(statuses, container.name), tally);

  const std::string_view policy = pod.spec.restart_policy;
  if (tally.failed_init > 0 && policy == "Never") return "Failed";
  const bool initializing = tally.pending_init > 0 || (tally.pending_sidecars > 0 && !tally.any_regular_started);
  if (initializing || tally.waiting > 0) return "Pending";
  if (tally.unknown > 0) return "Pending";
  if (tally.running > 0) return "Running";
  if (tally.stopped == 0) return "Pending";
  const bool all_succeeded = tally.stopped == tally.succeeded;
  if (progress == PodProgress::kTerminal && !api::is_static(pod)) return all_succeeded ? "Succeeded" : "Failed";
  if (policy == "Always" || policy.empty()) return "Running";
  if (all_succeeded) return "Succeeded";
  return policy == "Never" ? "Failed" : "Running";
}

PhaseTold settle_phase(const api::Pod& pod, const api::PodStatus& previous, std::string_view phase) {
  const auto has_ended = [](std::string_view each) { return each == "Failed" || each == "Succeeded"; };
  PhaseTold told{.phase = std::string(phase), .reason = {}, .message = {}};
  if (!has_ended(told.phase)) {
    if (has_ended(previous.phase)) {
      told.phase = previous.phase;
    } else if (has_ended(pod.status.phase)) {
      told.phase = pod.status.phase;
    }
  }
  if (told.phase == previous.phase) {
    told.reason = previous.reason.empty() ? pod.status.reason : previous.reason;
    told.message = previous.message.empty() ? pod.status.message : previous.message;
  }
  if (has_ended(pod.status.phase)) told.phase = pod.status.phase;
  return told;
}

}  // namespace spillway::containers
