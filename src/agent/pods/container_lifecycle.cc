#include "agent/pods/container_lifecycle.h"

#include "agent/contract/container_end.h"
#include "agent/pod_state/container_plan.h"
#include "agent/pod_state/pod_status.h"
#include "agent/starts/pull_secrets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kImageRetry = seconds(10);

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

}  // namespace

void ContainerLifecycle::on_started(const ContainerStarted& event, Now now) {
  PodWorker* worker = pods_.find(event.uid);
  ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(event.name);
  if (run == nullptr || run->restart_count != event.attempt || run->state != ContainerRun::State::kStarting) return;
  run->started_at = event.at;
  run->container_id = event.container_id;
  run->image_id = event.image_id;
  run->running_since = now.mono;
  events_.record(*worker, event.name, client::EventType::kNormal, "Started", "Container started", now);
  const auto hook = api::hook_of(*run->spec, "postStart");
  if (hook && worker->phase == WorkerPhase::kSyncing) {
    return hooks_.run_post_start(
        *worker, *run, *hook,
        [this](PodWorker& hooked, ContainerRun& started, const containers::ProbeVerdict& verdict, Now then) {
          on_post_start(hooked, started, verdict, then);
        },
        now);
  }
  set_running(*worker, *run, now);
}

void ContainerLifecycle::on_post_start(PodWorker& worker, ContainerRun& run, const containers::ProbeVerdict& verdict,
                                       Now now) {
  const std::string& container = run.spec->name;
  if (has_succeeded(verdict) || worker.phase != WorkerPhase::kSyncing) return set_running(worker, run, now);
  events_.record(worker, container, client::EventType::kWarning, "FailedPostStartHook", "PostStartHook failed", now);
  events_.record(worker, container, client::EventType::kNormal, "Killing", "FailedPostStartHook", now);
  run.waiting_reason = "PostStartHookError";
  run.waiting_message = hook_failure(*api::hook_of(*run.spec, "postStart"), run, *worker.pod, verdict.output);
  run.stopping = RunStop{};
  stops_.stop(worker, run, now);
  sync_.report(worker, now);
}

void ContainerLifecycle::set_running(PodWorker& worker, ContainerRun& run, Now now) {
  run.state = ContainerRun::State::kRunning;
  sync_.sync_or_report(worker, now);
  if (worker.phase == WorkerPhase::kSyncing) probes_.wake(worker.uid(), run.spec->name, now);
}

void ContainerLifecycle::on_start_failed(const ContainerStartFailed& event, Now now) {
  PodWorker* worker = pods_.find(event.uid);
  ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(event.name);
  if (run == nullptr || run->restart_count != event.attempt || run->state != ContainerRun::State::kStarting) return;
  if (worker->sandbox == PodSandbox::kLost && worker->phase == WorkerPhase::kSyncing) {
    forget_start(*run);  // the loss of the sandbox already explains the failed start
    return sync_.sync(*worker, now);
  }
  const std::string_view why = is_image_problem(event.reason) ? event.reason : event.message;
  events_.record(*worker, event.name, client::EventType::kWarning, "Failed", fmt::format("Error: {}", why), now);
  record_start_failure(*worker, *run, event.reason, event.message, now);
  if (is_image_problem(event.reason)) run->retry_at = now.mono + kImageRetry;  // images have a back-off of their own
  pod_stop_.on_container_gone(*worker, event.name, now);
  sync_.sync_or_report(*worker, now);
}

void ContainerLifecycle::on_exited(const ContainerExited& event, Now now) {
  PodWorker* worker = pods_.find(event.uid);
  ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(event.name);
  if (run == nullptr || run->restart_count != event.attempt) return;
  const bool over = run->state == ContainerRun::State::kWaiting || run->state == ContainerRun::State::kExited;
  if (over && worker->phase == WorkerPhase::kSyncing) return;
  api::ContainerState::Terminated ended = terminated_by(event);
  if (ended.container_id.empty()) ended.container_id = container_id(event.uid, event.name, event.attempt);
  record_exit(*run, std::move(ended), now.mono);
  if (worker->phase == WorkerPhase::kSyncing) return sync_.sync(*worker, now);
  run->state = ContainerRun::State::kExited;
  pod_stop_.on_container_gone(*worker, event.name, now);
  sync_.report(*worker, now);
}

}  // namespace spillway::agent
