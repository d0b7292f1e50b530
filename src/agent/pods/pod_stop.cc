#include "agent/pods/pod_stop.h"

#include "agent/contract/kill_grace.h"
#include "agent/pod_state/container_plan.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

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

}  // namespace

void PodStop::force(PodWorker& worker, ForcedEnd how, Now now) {
  worker.forced_end = std::move(how);
  if (worker.phase == WorkerPhase::kTerminating) {
    shorten_grace(worker);
  } else {
    begin(worker, now);
  }
}

void PodStop::begin(PodWorker& worker, Now now) {
  worker.phase = WorkerPhase::kTerminating;
  volumes_.remove(worker.uid());
  timers_.cancel(worker);
  worker.grace_seconds = effective_grace(0, grace_request(worker)).seconds;
  containers::ContainerNames alive;
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      if (is_alive(run)) alive.insert(run.spec->name);
      if (run.state != ContainerRun::State::kRunning) continue;
      events_.record(worker, run.spec->name, client::EventType::kNormal, "Killing",
                     "Stopping container " + run.spec->name, now);
    }
  }
  if (has_time_for_order(worker) && containers::OrderlyStop::is_needed(worker.pod->spec, alive)) {
    worker.orderly_stop.emplace(worker.pod->spec, alive, worker.grace_seconds, now.mono);
    advance_order(worker, now);
  } else {
    send_stop(worker, stop_grace(worker));
  }
  sync_.report(worker, now);
}

/// Executes the next steps of the orderly stop; the rest follows when a hook or a container ends, or the grace does.
void PodStop::advance_order(PodWorker& worker, Now now) {
  if (!worker.orderly_stop) return;
  for (const containers::StopStep& step : worker.orderly_stop->advance(now.mono)) {
    const ContainerRun* run = worker.find_run(step.container);
    if (run == nullptr) continue;
    if (step.what == containers::StopStep::What::kStop) {
      context_.host_commands.emplace_back(StopContainer{worker.uid(), step.container, step.grace});
      continue;
    }
    const auto done = [this, uid = worker.uid(), name = step.container](Now then) { on_hook_done(uid, name, then); };
    hooks_.run_pre_stop(worker, *run, step.grace, done, now);
  }
  if (!worker.orderly_stop) return;
  if (worker.orderly_stop->is_over()) {
    give_up_order(worker);
    send_stop(worker, seconds(kStopSecondsMin));
  } else if (!worker.stop_timer && worker.orderly_stop->due() > now.mono) {
    arm_order(worker);
  }
}

void PodStop::arm_order(PodWorker& worker) {
  worker.stop_timer = context_.api.at(worker.orderly_stop->due(), [this, uid = worker.uid()](Now then) {
    PodWorker* again = pods_.find(uid);
    if (again == nullptr) return;
    again->stop_timer.reset();
    if (again->orderly_stop && again->orderly_stop->due() <= then.mono) advance_order(*again, then);
  });
}

void PodStop::on_hook_done(const std::string& uid, const std::string& container, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || !worker->orderly_stop) return;
  worker->orderly_stop->on_hook_done(container);
  advance_order(*worker, now);
}

void PodStop::on_container_gone(PodWorker& worker, const std::string& container, Now now) {
  if (!worker.orderly_stop) return;
  worker.orderly_stop->on_gone(container);
  advance_order(worker, now);
}

void PodStop::shorten_grace(PodWorker& worker) {
  const EffectiveGrace grace = effective_grace(worker.grace_seconds, grace_request(worker));
  if (!grace.shortened) return;
  worker.grace_seconds = grace.seconds;
  give_up_order(worker);
  send_stop(worker, stop_grace(worker));
}

void PodStop::kill(PodWorker& worker) {
  give_up_order(worker);
  std::erase_if(context_.host_commands, [&](const HostCommand& command) {
    const auto* stop = std::get_if<StopPod>(&command);
    return stop != nullptr && stop->uid == worker.uid();
  });
  send_stop(worker, Duration{});
}

void PodStop::on_stopped(PodWorker& worker) {
  end_runs(worker);
  worker.phase = WorkerPhase::kTerminated;
  give_up_order(worker);
}

void PodStop::give_up_order(PodWorker& worker) {
  worker.orderly_stop.reset();
  if (worker.stop_timer) context_.api.cancel(*std::exchange(worker.stop_timer, std::nullopt));
}

void PodStop::send_stop(const PodWorker& worker, Duration grace) {
  context_.host_commands.emplace_back(StopPod{
      .uid = worker.uid(), .grace = grace, .storage_freed = worker.forced_end && worker.forced_end->frees_disk});
}

}  // namespace spillway::agent
