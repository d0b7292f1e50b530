// Probes and hooks of pods, and the actions that follow from their results.
#include "agent/contract/kill_grace.h"
#include "agent/pods/pod_status.h"
#include "agent/pods/pod_workers.h"
#include "api/object/probe.h"
#include "policy/containers/restart_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

using containers::ProbeKind;
using containers::ProbeOutcome;

std::string id_of(const PodWorker& worker, const ContainerRun& run) {
  return container_id(worker.uid(), run.spec->name, run.restart_count);
}

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

/// The environment that references in a probe's command are expanded with.
Environment literal_env(const api::Container& container) {
  Environment made;
  for (const api::EnvVar& each : container.env) made.add(each.name, each.value);
  return made;
}

/// The message for a container whose hook failed.
std::string hook_failure(const api::Handler& hook, const ContainerRun& run, const api::Pod& pod,
                         const std::string& why) {
  const std::string where =
      fmt::format("for Container \"{}\" in Pod \"{}\" failed - error: {}", run.spec->name, description_of(pod), why);
  if (hook.exec) return fmt::format("Exec lifecycle hook ([{}]) {}", fmt::join(*hook.exec, " "), where);
  if (hook.http_get) return fmt::format("HTTP lifecycle hook ({}) {}", hook.http_get->path, where);
  if (hook.sleep_seconds) return fmt::format("Sleep lifecycle hook ({}) {}", *hook.sleep_seconds, where);
  return "Cannot run handler: " + why;
}

bool has_succeeded(const containers::ProbeJudgement& hook) {
  return hook.outcome == ProbeOutcome::kSuccess || hook.outcome == ProbeOutcome::kWarning;
}

GraceRequest grace_of(const PodWorker& worker) {
  return {.deletion_seconds = worker.pod->metadata.deletion_grace_period_seconds,
          .override_seconds = {},
          .spec_seconds = worker.pod->spec.termination_grace_period_seconds};
}

}  // namespace

void PodWorkers::apply_probes(PodWorker& worker) {
  for (auto* list : worker.run_lists()) {
    for (ContainerRun& run : *list) {
      const bool running = run.state == ContainerRun::State::kRunning;
      const auto verdicts = prober_.verdicts(worker.uid(), run.spec->name, id_of(worker, run));
      run.started = containers::is_started(running, verdicts);
      run.ready = containers::is_ready(running, verdicts);
    }
  }
}

ProbesSeen PodWorkers::probes_seen(const PodWorker& worker) const {
  ProbesSeen seen;
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      if (run.state != ContainerRun::State::kRunning) continue;
      const std::string id = id_of(worker, run);
      if (const auto result = prober_.result(worker.uid(), run.spec->name, ProbeKind::kLiveness, id))
        seen.liveness.emplace(id, *result);
      if (const auto result = prober_.result(worker.uid(), run.spec->name, ProbeKind::kStartup, id))
        seen.startup.emplace(id, *result);
    }
  }
  return seen;
}

std::optional<containers::ProbedContainer> PodWorkers::look(const std::string& uid, const std::string& container,
                                                            Now now) const {
  const PodWorker* worker = find(uid);
  const ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr) return std::nullopt;
  containers::ProbedContainer seen;
  seen.pod_finished = worker->phase == WorkerPhase::kTerminated;
  seen.pod_deleted = worker->pod->metadata.deletion_timestamp || worker->phase == WorkerPhase::kTerminating;
  seen.never_restarts =
      !containers::may_restart(worker->pod->spec, *run->spec) && !api::may_restart_all(worker->pod->spec);
  const bool starting = run->state == ContainerRun::State::kStarting;
  if (starting || (run->state == ContainerRun::State::kWaiting && !run->ended)) return seen;
  seen.id = id_of(*worker, *run);
  seen.running = run->state == ContainerRun::State::kRunning;
  seen.ended = !seen.running;
  if (seen.running && run->running_since) seen.age = now.mono - *run->running_since;
  seen.started = containers::is_started(seen.running, prober_.verdicts(uid, container, seen.id));
  return seen;
}

HandlerPlace PodWorkers::place_of(const std::string& uid, const std::string& container) const {
  const PodWorker* worker = find(uid);
  const ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr) return {};
  return {.uid = uid,
          .container = run->spec,
          .pod_ip = addresses_of(*worker).pod_ip,
          .own_network = worker->own_network,
          .expand = [literal = literal_env(*run->spec)](std::string_view word) { return expand(word, literal); },
          .purpose = containers::HttpPurpose::kProbe};
}

void PodWorkers::on_probe_event(const std::string& uid, const std::string& container,
                                const containers::ProbeEvent& event, Now now) {
  const PodWorker* worker = find(uid);
  if (worker != nullptr) record(*worker, container, client::EventType::kWarning, event.reason, event.message, now);
}

/// Liveness matters only when it fails. Results of the other probes are reported before any action.
void PodWorkers::on_probe_result(const std::string& uid, ProbeKind kind, Now now) {
  PodWorker* worker = find(uid);
  if (worker == nullptr) return;
  if (kind == ProbeKind::kStartup) {
    for (const auto* list : std::as_const(*worker).run_lists())
      for (const ContainerRun& run : *list) prober_.wake(uid, run.spec->name, now);
  }
  worker->phase == WorkerPhase::kSyncing ? sync(*worker, now) : report(*worker, now);
}

/// Stops one container while the pod continues.
void PodWorkers::stop_run(PodWorker& worker, const PlannedStop& planned, Now now) {
  ContainerRun& run = *planned.run;
  const bool other = planned.stop.cause == containers::StopCause::kOther;
  run.stopping = RunStop{.again = planned.again, .new_definition = other};
  record(worker, run.spec->name, client::EventType::kNormal, "Killing", planned.stop.message, now);
  if (planned.stop.cause == containers::StopCause::kRestartAll) {
    context_.host_commands.emplace_back(StopContainer{worker.uid(), run.spec->name, {}});
    return;
  }
  const std::int64_t grace =
      container_stop_seconds(grace_of(worker), {.reason = reason_of(planned.stop.cause),
                                                .startup_probe_seconds = own_grace(run.spec->startup_probe),
                                                .liveness_probe_seconds = own_grace(run.spec->liveness_probe),
                                                .pre_stop_seconds = {}});
  tell_to_end(worker, run, seconds(grace), now);
}

void PodWorkers::leave_sandbox(PodWorker& worker, Now now) {
  for (auto* list : worker.run_lists()) {
    for (ContainerRun& run : *list) {
      if (run.state != ContainerRun::State::kRunning || run.stopping) continue;
      run.stopping = RunStop{.again = !worker.is_ephemeral(run), .new_definition = false};
      record(worker, run.spec->name, client::EventType::kNormal, "Killing", "Stopping container " + run.spec->name,
             now);
      tell_to_end(worker, run, seconds(container_stop_seconds(grace_of(worker), {})), now);
    }
  }
}

void PodWorkers::tell_to_end(PodWorker& worker, ContainerRun& run, Duration grace, Now now) {
  const auto tell = [this, uid = worker.uid(), name = run.spec->name, attempt = run.restart_count, grace,
                     began = now.mono](Now then) {
    const PodWorker* again = find(uid);
    const ContainerRun* still = again == nullptr ? nullptr : again->find_run(name);
    if (still == nullptr || again->phase != WorkerPhase::kSyncing || still->restart_count != attempt) return;
    const Duration took = std::chrono::duration_cast<seconds>(then.mono - began);
    context_.host_commands.emplace_back(
        StopContainer{uid, name, std::max<Duration>(grace - took, seconds(kStopSecondsMin))});
  };
  run_pre_stop(worker, *run.spec, grace, tell, now);
}

/// `done` is called without a hook as well, at once.
void PodWorkers::run_pre_stop(const PodWorker& worker, const api::Container& container, Duration grace,
                              std::function<void(Now)> done, Now now) {
  const auto hook = api::hook_of(container, "preStop");
  if (!hook) return done(now);
  HandlerPlace place = place_of(worker.uid(), container.name);
  place.purpose = containers::HttpPurpose::kLifecycle;
  place.expand = {};
  calls_.begin(
      place, *hook, grace,
      [this, uid = worker.uid(), name = container.name, done = std::move(done)](
          const containers::ProbeJudgement& judgement, Now then) {
        const PodWorker* again = find(uid);
        if (again == nullptr) return;
        tell_of_fallback(*again, judgement, then);
        if (!has_succeeded(judgement)) {
          context_.log.info("preStop hook failed",
                            {{"pod_uid", uid}, {"container", name}, {"error", judgement.output}});
          record(*again, name, client::EventType::kWarning, "FailedPreStopHook", "PreStopHook failed", then);
        }
        done(then);
      },
      now);
}

/// A hook that was to be asked by HTTPS.
void PodWorkers::tell_of_fallback(const PodWorker& worker, const containers::ProbeJudgement& judgement, Now now) {
  if (judgement.outcome != ProbeOutcome::kWarning) return;
  record(worker, {}, client::EventType::kWarning, "LifecycleHTTPFallback", judgement.output, now);
}

void PodWorkers::run_post_start(PodWorker& worker, ContainerRun& run, const api::Handler& hook, Now now) {
  HandlerPlace place = place_of(worker.uid(), run.spec->name);
  place.purpose = containers::HttpPurpose::kLifecycle;
  place.expand = {};
  calls_.begin(
      place, hook, kHookTimeMax,
      [this, uid = worker.uid(), name = run.spec->name, attempt = run.restart_count](
          const containers::ProbeJudgement& judgement, Now then) {
        on_post_start(uid, name, attempt, judgement, then);
      },
      now);
}

void PodWorkers::on_post_start(const std::string& uid, const std::string& container, std::int32_t attempt,
                               const containers::ProbeJudgement& judgement, Now now) {
  PodWorker* worker = find(uid);
  ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr || run->restart_count != attempt || run->state != ContainerRun::State::kStarting) return;
  tell_of_fallback(*worker, judgement, now);
  if (has_succeeded(judgement) || worker->phase != WorkerPhase::kSyncing) return set_running(*worker, *run, now);
  record(*worker, container, client::EventType::kWarning, "FailedPostStartHook", "PostStartHook failed", now);
  record(*worker, container, client::EventType::kNormal, "Killing", "FailedPostStartHook", now);
  run->waiting_reason = "PostStartHookError";
  run->waiting_message = hook_failure(*api::hook_of(*run->spec, "postStart"), *run, *worker->pod, judgement.output);
  run->stopping = RunStop{};
  const std::int64_t grace = container_stop_seconds(grace_of(*worker), {});
  tell_to_end(*worker, *run, seconds(grace), now);
  report(*worker, now);
}

void PodWorkers::set_running(PodWorker& worker, ContainerRun& run, Now now) {
  run.state = ContainerRun::State::kRunning;
  worker.phase == WorkerPhase::kSyncing ? sync(worker, now) : report(worker, now);
  if (worker.phase == WorkerPhase::kSyncing) prober_.wake(worker.uid(), run.spec->name, now);
}

}  // namespace spillway::agent
