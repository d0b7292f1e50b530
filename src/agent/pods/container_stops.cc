#include "agent/pods/container_stops.h"

#include "agent/contract/kill_grace.h"
#include "api/object/probe.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace spillway::agent {
namespace {

std::optional<std::int64_t> own_grace(const api::Json& probe) {
  const auto read = api::probe_of(probe);
  return read ? read->termination_grace_period_seconds : std::nullopt;
}

StopReason reason_of(containers::StopCause cause) {
  switch (cause) {
    case containers::StopCause::kLivenessProbe:
      return StopReason::kLivenessProbe;
    case containers::StopCause::kStartupProbe:
      return StopReason::kStartupProbe;
    case containers::StopCause::kOther:
    case containers::StopCause::kUnknownState:
    case containers::StopCause::kRestartAll:
      break;
  }
  return StopReason::kOther;
}

GraceRequest grace_of(const PodWorker& worker) {
  return {.deletion_seconds = worker.pod->metadata.deletion_grace_period_seconds,
          .override_seconds = {},
          .spec_seconds = worker.pod->spec.termination_grace_period_seconds};
}

}  // namespace

/// Stops one container while the pod continues.
void ContainerStops::stop(PodWorker& worker, const PlannedStop& planned, Now now) {
  ContainerRun& run = *planned.run;
  const bool other = planned.stop.cause == containers::StopCause::kOther;
  run.stopping = RunStop{.again = planned.again, .new_definition = other};
  events_.record(worker, run.spec->name, client::EventType::kNormal, "Killing", planned.stop.message, now);
  if (planned.stop.cause == containers::StopCause::kRestartAll) {
    context_.host_commands.emplace_back(StopContainer{worker.uid(), run.spec->name, {}});
    return;
  }
  const std::int64_t grace =
      container_stop_seconds(grace_of(worker), {.reason = reason_of(planned.stop.cause),
                                                .startup_probe_seconds = own_grace(run.spec->startup_probe),
                                                .liveness_probe_seconds = own_grace(run.spec->liveness_probe),
                                                .pre_stop_seconds = {}});
  stop_after_hook(worker, run, seconds(grace), now);
}

void ContainerStops::stop_in_lost_sandbox(PodWorker& worker, Now now) {
  for (auto* list : worker.run_lists()) {
    for (ContainerRun& run : *list) {
      if (run.state != ContainerRun::State::kRunning || run.stopping) continue;
      run.stopping = RunStop{.again = !worker.is_ephemeral(run), .new_definition = false};
      events_.record(worker, run.spec->name, client::EventType::kNormal, "Killing",
                     "Stopping container " + run.spec->name, now);
      stop(worker, run, now);
    }
  }
}

void ContainerStops::stop(const PodWorker& worker, const ContainerRun& run, Now now) {
  stop_after_hook(worker, run, seconds(container_stop_seconds(grace_of(worker), {})), now);
}

void ContainerStops::stop_after_hook(const PodWorker& worker, const ContainerRun& run, Duration grace, Now now) {
  const auto stop = [this, uid = worker.uid(), name = run.spec->name, attempt = run.restart_count, grace,
                     began = now.mono](Now then) { send_stop(uid, name, attempt, grace, began, then); };
  hooks_.run_pre_stop(worker, run, grace, stop, now);
}

void ContainerStops::send_stop(const std::string& uid, const std::string& container, std::int32_t attempt,
                               Duration grace, Instant began, Now now) {
  const PodWorker* worker = pods_.find_syncing(uid);
  const ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr || run->restart_count != attempt) return;
  const Duration took = std::chrono::duration_cast<seconds>(now.mono - began);
  context_.host_commands.emplace_back(
      StopContainer{uid, container, std::max<Duration>(grace - took, seconds(kStopSecondsMin))});
}

}  // namespace spillway::agent
