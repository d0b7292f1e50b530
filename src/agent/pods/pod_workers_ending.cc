// The end of pods: on request, by force, or by themselves; and the work that remains then.
#include "agent/contract/kill_grace.h"
#include "agent/pods/container_plan.h"
#include "agent/pods/pod_workers.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr Duration kDeleteRetry = seconds(1);

GraceRequest grace_request(const PodWorker& worker) {
  return {.deletion_seconds = worker.pod->metadata.deletion_grace_period_seconds,
          .override_seconds = worker.forced_end ? worker.forced_end->grace_period_seconds : std::nullopt,
          .spec_seconds = worker.pod->spec.termination_grace_period_seconds};
}

/// The time between the stop signal and the kill of its containers.
Duration stop_grace(const PodWorker& worker) {
  return seconds(container_stop_seconds({.override_seconds = worker.grace_seconds}, {}));
}

bool is_alive(const ContainerRun& run) {
  return run.state == ContainerRun::State::kRunning || run.state == ContainerRun::State::kStarting;
}

/// An eviction that takes its second is not held up by hooks and orders.
bool has_time_for_order(const PodWorker& worker) {
  return worker.grace_seconds > 1 || !worker.forced_end;
}

bool ever_began(const ContainerRun& run) {
  return run.state != ContainerRun::State::kWaiting || run.ended || run.ended_before;
}

/// True if the init containers of the pod have done their work, or had done it once.
bool was_initialized(const PodWorker& worker) {
  if (worker.init_containers.empty() || std::ranges::any_of(worker.containers, ever_began)) return true;
  const ContainerRun& last = worker.init_containers.back();
  if (api::is_sidecar(*last.spec)) return last.state == ContainerRun::State::kRunning && last.started;
  return last.ended && last.ended->exit_code == 0;
}

/// The run of a container is over because its pod is. One whose end was not seen, or that ought to have run by now, is
/// reported as failed: whether it succeeded is unknown.
void end_run(ContainerRun& run) {
  if (run.state == ContainerRun::State::kExited) return;
  const bool waited_for_back_off = !is_alive(run) && run.ended;
  run.state = ContainerRun::State::kExited;
  if (!waited_for_back_off) run.ended = unseen_end("The container could not be located when the pod was terminated");
}

/// A container that was never reached, because an init container before it did not succeed, stays waiting. As in
/// Kubernetes, the first init container always counts as reached.
void end_runs(PodWorker& worker) {
  if (was_initialized(worker)) std::ranges::for_each(worker.containers, end_run);
  auto& init = worker.init_containers;
  const auto last_begun = std::ranges::find_if(init.rbegin(), init.rend(), ever_began);
  const auto begun = std::max<std::ptrdiff_t>(init.rend() - last_begun, init.empty() ? 0 : 1);
  std::for_each(init.begin(), init.begin() + begun, end_run);
  for (ContainerRun& run : worker.ephemeral_containers) {
    if (ever_began(run)) end_run(run);
  }
}

StopPod stop_of(const PodWorker& worker, Duration grace) {
  return {.uid = worker.uid(), .grace = grace, .storage_freed = worker.forced_end && worker.forced_end->frees_disk};
}

}  // namespace

void PodWorkers::terminate(PodWorker& worker, Now now) {
  worker.phase = WorkerPhase::kTerminating;
  volumes_.remove(worker.uid());
  cancel_timers(worker);
  worker.grace_seconds = effective_grace(0, grace_request(worker)).seconds;
  containers::ContainerNames alive;
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      if (is_alive(run)) alive.insert(run.spec->name);
      if (run.state != ContainerRun::State::kRunning) continue;
      record(worker, run.spec->name, client::EventType::kNormal, "Killing", "Stopping container " + run.spec->name,
             now);
    }
  }
  if (has_time_for_order(worker) && containers::OrderlyStop::is_needed(worker.pod->spec, alive)) {
    worker.orderly_stop.emplace(worker.pod->spec, alive, worker.grace_seconds, now.mono);
    advance_stop(worker, now);
  } else {
    context_.host_commands.emplace_back(stop_of(worker, stop_grace(worker)));
  }
  report(worker, now);
}

/// Executes the next steps of the orderly stop; the rest follows when a hook or a container ends, or the grace does.
void PodWorkers::advance_stop(PodWorker& worker, Now now) {
  if (!worker.orderly_stop) return;
  for (const containers::StopStep& step : worker.orderly_stop->advance(now.mono)) {
    const ContainerRun* run = worker.find_run(step.container);
    if (run == nullptr) continue;
    if (step.what == containers::StopStep::What::kTell) {
      context_.host_commands.emplace_back(StopContainer{worker.uid(), step.container, step.grace});
      continue;
    }
    const auto done = [this, uid = worker.uid(), name = step.container](Now then) {
      PodWorker* again = find(uid);
      if (again == nullptr || !again->orderly_stop) return;
      again->orderly_stop->on_hook_done(name);
      advance_stop(*again, then);
    };
    run_pre_stop(worker, *run->spec, step.grace, done, now);
  }
  if (!worker.orderly_stop) return;
  if (worker.orderly_stop->is_over()) {
    give_up_order(worker);
    context_.host_commands.emplace_back(stop_of(worker, seconds(kStopSecondsMin)));
  } else if (!worker.stop_timer && worker.orderly_stop->due() > now.mono) {
    worker.stop_timer = context_.api.at(worker.orderly_stop->due(), [this, uid = worker.uid()](Now then) {
      PodWorker* again = find(uid);
      if (again == nullptr) return;
      again->stop_timer.reset();
      if (again->orderly_stop && again->orderly_stop->due() <= then.mono) advance_stop(*again, then);
    });
  }
}

void PodWorkers::give_up_order(PodWorker& worker) {
  worker.orderly_stop.reset();
  if (worker.stop_timer) context_.api.cancel(*std::exchange(worker.stop_timer, std::nullopt));
}

void PodWorkers::on_gone_in_stop(PodWorker& worker, const std::string& container, Now now) {
  if (!worker.orderly_stop) return;
  worker.orderly_stop->on_gone(container);
  advance_stop(worker, now);
}

void PodWorkers::cancel_timers(PodWorker& worker) {
  for (auto* timer : {&worker.retry_timer, &worker.deadline_timer}) {
    if (*timer) context_.api.cancel(*std::exchange(*timer, std::nullopt));
  }
}

void PodWorkers::exceed_deadline(PodWorker& worker, Now now) {
  context_.log.info("pod was active longer than its deadline",
                    {{"pod", worker.pod->key().text()}, {"pod_uid", worker.uid()}});
  record(worker, {}, client::EventType::kNormal, kDeadlineExceeded, kDeadlineExceededMessage, now);
  end(worker, deadline_exceeded(), now);
}

void PodWorkers::shorten_grace(PodWorker& worker) {
  const EffectiveGrace grace = effective_grace(worker.grace_seconds, grace_request(worker));
  if (!grace.shortened) return;
  worker.grace_seconds = grace.seconds;
  give_up_order(worker);
  context_.host_commands.emplace_back(stop_of(worker, stop_grace(worker)));
}

void PodWorkers::evict(const eviction::EvictPod& action, Urgency urgency, Now now) {
  PodWorker* worker = find(action.uid);
  if (worker == nullptr || worker->phase == WorkerPhase::kTerminated) return;
  end(*worker, evicted(action), now);
  if (urgency == Urgency::kEmergency) kill_now(action.uid);
}

void PodWorkers::shut_down(const std::string& uid, std::int64_t grace_seconds, Now now) {
  PodWorker* worker = find(uid);
  if (worker == nullptr || worker->phase == WorkerPhase::kTerminated) return;
  end(*worker, shut_down_with(grace_seconds), now);
}

bool PodWorkers::is_reported(const std::string& uid) const {
  return !workers_.contains(uid) || (is_finished(uid) && status_.is_written(uid));
}

void PodWorkers::preempt(const admission::Victim& victim, Now now) {
  PodWorker* worker = find(victim.uid);
  if (worker == nullptr || worker->phase == WorkerPhase::kTerminated) return;
  record(*worker, {}, client::EventType::kWarning, admission::kPreempting, admission::kPreemptedMessage, now);
  end(*worker, {.ending = admission::preempted(), .grace_period_seconds = {}}, now);
}

void PodWorkers::end(PodWorker& worker, ForcedEnd how, Now now) {
  worker.forced_end = std::move(how);
  if (worker.phase == WorkerPhase::kTerminating) {
    shorten_grace(worker);
  } else {
    terminate(worker, now);
  }
}

void PodWorkers::kill_now(const std::string& uid) {
  PodWorker* worker = find(uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kTerminating) return;
  give_up_order(*worker);
  auto& commands = context_.host_commands;
  std::erase_if(commands, [&](const HostCommand& command) {
    const auto* stop = std::get_if<StopPod>(&command);
    return stop != nullptr && stop->uid == uid;
  });
  commands.emplace_back(stop_of(*worker, Duration{}));
}

void PodWorkers::on_pod_stopped(const PodStopped& event, Now now) {
  PodWorker* worker = find(event.uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kTerminating) return;
  end_runs(*worker);
  worker->phase = WorkerPhase::kTerminated;
  give_up_order(*worker);
  calls_.forget(event.uid);
  prober_.remove(event.uid);
  context_.log.info("pod stopped", {{"pod", worker->pod->key().text()}, {"pod_uid", event.uid}});
  const Notices::Hold until_all_is_done(notices_);
  notices_.add([this, uid = event.uid, now] {
    if (on_finished_) on_finished_(uid, now);
    admission_.on_finished(uid, now);
  });
  report(*worker, now);
  finish(*worker, now);
}

void PodWorkers::finish(PodWorker& worker, Now now) {
  if (worker.phase != WorkerPhase::kTerminated) return;
  if (worker.object == PodObject::kGone || worker.object == PodObject::kRetired) {
    forget(worker.uid(), now);
    return;
  }
  // Only the object of an evicted pod is kept; the logs of pods that failed by themselves are kept with it.
  if (worker.forced_end && status_.is_written(worker.uid())) remove_content(worker);
  if (worker.pod->metadata.deletion_timestamp && status_.is_written(worker.uid())) {
    delete_object(worker, now);
  }
}

void PodWorkers::delete_object(PodWorker& worker, Now) {
  if (std::exchange(worker.object, PodObject::kDeleting) == PodObject::kDeleting) return;
  const std::string path = client::object_path("v1", "pods", worker.pod->metadata.ns, worker.pod->metadata.name);
  const api::Json options = api::Json::object({{"apiVersion", "v1"},
                                               {"kind", "DeleteOptions"},
                                               {"gracePeriodSeconds", 0},
                                               {"preconditions", api::Json::object({{"uid", worker.uid()}})}});
  context_.api.remove(path, options, [this, uid = worker.uid()](const Result<api::Json>& outcome, Now answered) {
    if (outcome || outcome.error().code == ErrorCode::kNotFound) return;  // the watch reports the rest
    context_.api.at(answered.mono + kDeleteRetry, [this, uid](Now now) {
      PodWorker* again = find(uid);
      if (again == nullptr || again->object != PodObject::kDeleting) return;
      again->object = PodObject::kStands;
      finish(*again, now);
    });
  });
}

void PodWorkers::gone(const std::string& uid, Now now) {
  PodWorker* worker = find(uid);
  if (worker == nullptr) return;
  worker->object = PodObject::kGone;
  status_.forget(uid);
  if (worker->phase == WorkerPhase::kTerminated) {
    forget(uid, now);
  } else if (worker->phase != WorkerPhase::kTerminating) {
    terminate(*worker, now);
  }
}

void PodWorkers::forget(const std::string& known, Now now) {
  const std::string uid = known;  // the argument may be the worker's own string
  PodWorker* worker = find(uid);
  if (worker == nullptr) return;
  cancel_timers(*worker);
  give_up_order(*worker);
  prober_.remove(uid);
  calls_.forget(uid);
  remove_content(*worker);
  status_.forget(uid);
  workers_.erase(uid);
  notices_.add([this, uid, now] {
    if (on_forgotten_) on_forgotten_(uid, now);
  });
}

void PodWorkers::remove_content(PodWorker& worker) {
  if (worker.content == PodContent::kNever || worker.content == PodContent::kRemoved) return;
  worker.content = PodContent::kRemoved;
  context_.host_commands.emplace_back(RemovePod{worker.uid()});
}

}  // namespace spillway::agent
