#include "policy/containers/pod_phase.h"

#include "policy/containers/restart_rules.h"

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
  int restarting = 0;  // stopped containers that start again
};

const api::ContainerStatus* find(std::span<const api::ContainerStatus> statuses, std::string_view name) {
  const auto found = std::ranges::find(statuses, name, &api::ContainerStatus::name);
  return found == statuses.end() ? nullptr : &*found;
}

void count_init(const api::PodSpec& spec, const api::Container& container, const api::ContainerStatus* status,
                Tally& tally) {
  if (status == nullptr || status->state.running) {
    ++tally.pending_init;
    return;
  }
  const auto& ended = status->state.terminated ? status->state.terminated : status->last_state.terminated;
  if (!status->state.terminated && !(status->state.waiting && ended)) {
    ++tally.pending_init;
  } else if (ended->exit_code != 0 && ended->reason != kRestartingAll &&
             !restarts_after(spec, container, ended->exit_code)) {
    ++tally.failed_init;
  }
}

void count_sidecar(const api::ContainerStatus* status, Tally& tally) {
  if (status == nullptr) {
    ++tally.unknown;
  } else if (status->state.running) {
    if (!status->started.value_or(false)) ++tally.pending_sidecars;
    ++tally.running;
  } else if (status->state.terminated) {
    return;  // a stopped sidecar does not affect the phase
  } else if (status->state.waiting) {
    if (status->last_state.terminated) return;
    ++tally.pending_sidecars;
    ++tally.waiting;
  } else {
    ++tally.pending_sidecars;
    ++tally.unknown;
  }
}

void count_stopped(const api::PodSpec& spec, const api::Container& container, std::int32_t exit_code, Tally& tally) {
  ++tally.stopped;
  if (restarts_after(spec, container, exit_code)) ++tally.restarting;
}

void count_regular(const api::PodSpec& spec, const api::Container& container, const api::ContainerStatus* status,
                   Tally& tally) {
  if (status == nullptr) {
    ++tally.unknown;
  } else if (status->state.running) {
    ++tally.running;
  } else if (status->state.terminated) {
    count_stopped(spec, container, status->state.terminated->exit_code, tally);
    if (status->state.terminated->exit_code == 0) ++tally.succeeded;
  } else if (status->state.waiting && status->last_state.terminated) {
    count_stopped(spec, container, status->last_state.terminated->exit_code, tally);
  } else if (status->state.waiting) {
    ++tally.waiting;
  } else {
    ++tally.unknown;
  }
}

}  // namespace

std::string_view phase_of(const api::Pod& pod, std::span<const api::ContainerStatus> statuses, PodProgress progress,
                          Initialized initialized) {
  Tally tally;
  for (const api::Container& container : pod.spec.init_containers) {
    const api::ContainerStatus* status = find(statuses, container.name);
    api::is_sidecar(container) ? count_sidecar(status, tally) : count_init(pod.spec, container, status, tally);
  }
  for (const api::Container& container : pod.spec.containers) {
    count_regular(pod.spec, container, find(statuses, container.name), tally);
  }
  if (tally.failed_init > 0) return "Failed";
  const bool initializing = tally.pending_init > 0 || (tally.pending_sidecars > 0 && initialized == Initialized::kNo);
  if (initializing || tally.waiting > 0) return "Pending";
  if (tally.unknown > 0) return "Pending";
  if (tally.running > 0) return "Running";
  if (tally.stopped == 0) return "Pending";
  const bool all_succeeded = tally.stopped == tally.succeeded;
  if (progress == PodProgress::kTerminal && !api::is_static(pod)) return all_succeeded ? "Succeeded" : "Failed";
  if (tally.restarting > 0) return "Running";
  return all_succeeded ? "Succeeded" : "Failed";
}

ReportedPhase resolve_phase(const api::Pod& pod, const api::PodStatus& previous, std::string_view phase) {
  const auto has_ended = [](std::string_view each) { return each == "Failed" || each == "Succeeded"; };
  ReportedPhase reported{.phase = std::string(phase), .reason = {}, .message = {}};
  if (!has_ended(reported.phase)) {
    if (has_ended(previous.phase)) {
      reported.phase = previous.phase;
    } else if (has_ended(pod.status.phase)) {
      reported.phase = pod.status.phase;
    }
  }
  if (reported.phase == previous.phase) {
    reported.reason = previous.reason.empty() ? pod.status.reason : previous.reason;
    reported.message = previous.message.empty() ? pod.status.message : previous.message;
  }
  if (has_ended(pod.status.phase)) reported.phase = pod.status.phase;
  return reported;
}

}  // namespace spillway::containers
