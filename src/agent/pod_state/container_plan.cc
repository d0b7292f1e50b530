#include "agent/pod_state/container_plan.h"

#include "agent/pod_state/pod_status.h"
#include "policy/containers/restart_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

using containers::Instance;

constexpr std::int32_t kKilledExitCode = 137;
constexpr std::int32_t kStartErrorExitCode = 128;
constexpr std::string_view kRestartingAllMessage = "The container is removed because RestartAllContainers in place";

/// The last instance of the container; nullopt: it has never run.
std::optional<Instance> instance_of(const PodWorker& worker, const ContainerRun& run) {
  Instance made{.id = container_id(worker.uid(), run.spec->name, run.restart_count),
                .name = run.spec->name,
                .state = Instance::State::kInTransition,
                .exit_code = 0,
                .reason = {},
                .outdated = false};
  if (run.reading || run.state == ContainerRun::State::kStarting || run.stopping) return made;
  if (run.state == ContainerRun::State::kRunning) {
    made.state = Instance::State::kRunning;
    made.outdated = run.image != run.spec->image;
    return made;
  }
  if (run.again) {
    made.state = Instance::State::kCreated;
    return made;
  }
  if (!run.ended) return std::nullopt;
  made.state = Instance::State::kExited;
  made.exit_code = run.ended->exit_code;
  made.reason = run.ended->reason;
  return made;
}

containers::PodSeen seen_of(const PodWorker& worker, const ProbesSeen& probes) {
  containers::PodSeen seen{.sandboxes = {}, .instances = {}, .liveness = probes.liveness, .startup = probes.startup};
  seen.sandboxes = sandboxes_of(worker);
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      if (auto instance = instance_of(worker, run)) seen.instances.push_back(*std::move(instance));
    }
  }
  return seen;
}

/// True while the container runs, starts or stops.
bool is_held(const ContainerRun& run) {
  return run.reading || run.state == ContainerRun::State::kStarting || run.state == ContainerRun::State::kRunning;
}

void begin_back_off(const PodWorker& worker, ContainerRun& run, Duration delay) {
  run.retry_at = *run.ended_at + delay;
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = "CrashLoopBackOff";
  run.waiting_message = containers::back_off_message(delay, run.spec->name, description_of(*worker.pod));
}

/// Starts a container that is due, or lets it wait for its back-off.
void start_or_wait(const PodWorker& worker, ContainerRun& run, Instant now, ContainerPlan& plan) {
  if (run.retry_at == Instant::max()) return;  // cannot be started, ever
  if (run.permitted) {
    plan.start.push_back(&run);
    return;
  }
  if (!run.retry_at) {
    const auto delay = run.back_off.ask(now, run.ended_at, worker.restart_bounds);
    if (!delay) {
      run.permitted = true;
      plan.start.push_back(&run);
      return;
    }
    begin_back_off(worker, run, *delay);
    plan.backs_off.push_back(&run);
  }
  if (*run.retry_at > now) {
    plan.requeue_at = std::min(*run.retry_at, plan.requeue_at.value_or(*run.retry_at));
    return;
  }
  if (run.waiting_reason == "CrashLoopBackOff")
    run.back_off.ask(now, run.ended_at, worker.restart_bounds);  // the next wait grows
  plan.start.push_back(&run);
}

/// The status of a container that was ended because all containers of its pod start anew.
api::ContainerState::Terminated end_for_restart(const ContainerRun& run) {
  api::ContainerState::Terminated ended;
  ended.exit_code = kKilledExitCode;
  ended.reason = containers::kRestartingAll;
  ended.message = kRestartingAllMessage;
  if (run.ended) {
    ended.started_at = run.ended->started_at;
    ended.finished_at = run.ended->finished_at;
    ended.container_id = run.ended->container_id;
  }
  return ended;
}

/// Containers that have run start as if they had not, without a back-off.
void begin_all_anew(PodWorker& worker) {
  for (auto* list : {&worker.init_containers, &worker.containers}) {
    for (ContainerRun& run : *list) {
      if (!run.ended) continue;
      run.ended_before = end_for_restart(run);
      run.ended.reset();
      run.ended_at.reset();
      run.retry_at.reset();
      run.back_off = {};
      run.permitted = false;
      run.again = false;
      run.state = ContainerRun::State::kWaiting;
      run.waiting_reason = containers::kRestartingAll;
      run.waiting_message = kRestartingAllMessage;
      ++run.restart_count;
    }
  }
}

void restore(ContainerRun& run, const std::vector<api::ContainerStatus>& statuses, Instant now) {
  const auto found = std::ranges::find(statuses, run.spec->name, &api::ContainerStatus::name);
  if (found == statuses.end()) return;
  run.image = found->image;
  run.restart_count = found->restart_count;
  if (found->state.terminated) {
    run.ended = found->state.terminated;
    run.ended_before = found->last_state.terminated;
  } else if (found->state.running) {
    run.ended = unseen_end("The container could not be located when the agent started");
    run.ended->started_at = found->state.running->started_at;
    run.ended->container_id = found->container_id;
    run.ended_before = found->last_state.terminated;
  } else if (found->last_state.terminated && found->last_state.terminated->reason == containers::kRestartingAll) {
    run.ended_before = found->last_state.terminated;  // the last run was about to start
  } else if (found->last_state.terminated) {
    run.ended = found->last_state.terminated;
  }
  if (run.ended) {
    run.state = ContainerRun::State::kExited;
    run.ended_at = now;
  }
}

/// Adds the new ephemeral containers. True: there are any.
bool add_ephemeral(PodWorker& worker) {
  bool added = false;
  for (const api::Container& container : worker.spec_source->spec.ephemeral_containers) {
    if (worker.find_run(container.name) != nullptr) continue;
    worker.ephemeral_containers.emplace_back().spec = &container;
    added = true;
  }
  return added;
}

}  // namespace

std::vector<containers::Sandbox> sandboxes_of(const PodWorker& worker) {
  return {{.id = worker.uid(),
           .attempt = 0,
           .ready = worker.content == PodContent::kCreated && worker.phase != WorkerPhase::kTerminated &&
                    worker.sandbox != PodSandbox::kLost,
           .host_network = worker.pod->spec.host_network,
           .ip = "of the node"}};
}

ContainerPlan plan_containers(PodWorker& worker, const ProbesSeen& probes, Instant now) {
  const containers::PodActions actions = containers::compute_pod_actions(*worker.pod, seen_of(worker, probes));
  ContainerPlan plan;
  if (actions.restart_all && !holds_container(worker)) {
    begin_all_anew(worker);
    return plan_containers(worker, probes, now);
  }
  plan.finished = actions.kill_pod && !actions.create_sandbox;
  if (plan.finished) return plan;
  const auto is_due = [&](const std::string& name) {
    return std::ranges::find(actions.init_containers, name) != actions.init_containers.end() ||
           std::ranges::find(actions.containers, name) != actions.containers.end();
  };
  for (const containers::ContainerToStop& each : actions.stop) {
    const bool again = actions.restart_all || is_due(each.name);
    if (ContainerRun* run = worker.find_run(each.name)) plan.stop.push_back({run, each, again});
  }
  for (const auto* names : {&actions.ephemeral_containers, &actions.init_containers, &actions.containers}) {
    for (const std::string& name : *names) {
      ContainerRun* run = worker.find_run(name);
      if (run == nullptr || std::ranges::find(plan.stop, run, &PlannedStop::run) != plan.stop.end()) continue;
      if (actions.create_sandbox && is_held(*run)) continue;  // the container first ends with the old sandbox
      start_or_wait(worker, *run, now, plan);
    }
  }
  return plan;
}

bool holds_container(const PodWorker& worker) {
  return std::ranges::any_of(worker.run_lists(), [](const auto* list) { return std::ranges::any_of(*list, is_held); });
}

void repeat_init_containers(PodWorker& worker) {
  for (ContainerRun& run : worker.init_containers) {
    run.again = false;
    run.ended_at.reset();
    run.retry_at.reset();
    if (!run.ended) continue;
    run.ended_before = std::exchange(run.ended, std::nullopt);
    run.state = ContainerRun::State::kWaiting;
    run.waiting_reason = "ContainerCreating";
    run.waiting_message.clear();
    ++run.restart_count;
  }
}

void restore_containers(PodWorker& worker, Instant now) {
  worker.spec_source = worker.pod;
  worker.start_time = worker.pod->status.start_time;
  for (const api::Container& container : worker.spec_source->spec.init_containers) {
    worker.init_containers.emplace_back().spec = &container;
    restore(worker.init_containers.back(), worker.pod->status.init_container_statuses, now);
  }
  for (const api::Container& container : worker.spec_source->spec.containers) {
    worker.containers.emplace_back().spec = &container;
    restore(worker.containers.back(), worker.pod->status.container_statuses, now);
  }
  for (const api::Container& container : worker.spec_source->spec.ephemeral_containers) {
    worker.ephemeral_containers.emplace_back().spec = &container;
    restore(worker.ephemeral_containers.back(), worker.pod->status.ephemeral_container_statuses, now);
  }
}

bool adopt_definitions(PodWorker& worker) {
  std::vector<std::pair<ContainerRun*, const api::Container*>> pairs;
  const auto find_all = [&](std::vector<ContainerRun>& runs, const std::vector<api::Container>& containers) {
    for (ContainerRun& run : runs) {
      const auto found = std::ranges::find(containers, run.spec->name, &api::Container::name);
      if (found == containers.end()) return false;
      pairs.emplace_back(&run, &*found);
    }
    return true;
  };
  if (!find_all(worker.init_containers, worker.pod->spec.init_containers) ||
      !find_all(worker.containers, worker.pod->spec.containers) ||
      !find_all(worker.ephemeral_containers, worker.pod->spec.ephemeral_containers)) {
    return false;  // the spec names a container that the worker does not have
  }
  bool changed = false;
  for (const auto& [run, container] : pairs) {
    const bool another = run->spec->image != container->image && !worker.is_ephemeral(*run);
    const bool resized = run->spec->resources != container->resources;
    if ((another || resized) && run->state == ContainerRun::State::kWaiting &&
        run->waiting_reason == "CrashLoopBackOff") {
      run->back_off = {};  // the back-off belongs to the old definition
      run->ended_at.reset();
      run->retry_at.reset();
    }
    changed = changed || another;
    run->spec = container;
  }
  worker.spec_source = worker.pod;
  return add_ephemeral(worker) || changed;
}

void record_exit(ContainerRun& run, api::ContainerState::Terminated ended, Instant now) {
  run.state = ContainerRun::State::kExited;
  run.ended = std::move(ended);
  run.ended_at = now;
  run.retry_at.reset();
  run.permitted = false;
  const auto stopped = std::exchange(run.stopping, std::nullopt);
  if (!stopped || !stopped->again) return;
  run.again = true;
  if (!stopped->new_definition) return;
  run.state = ContainerRun::State::kWaiting;  // by the new definition, with a back-off of its own
  run.waiting_reason = "ContainerCreating";
  run.waiting_message.clear();
  run.back_off = {};
  run.ended_at.reset();
}

void forget_start(ContainerRun& run) {
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = "ContainerCreating";
  run.waiting_message.clear();
  run.retry_at.reset();
  run.permitted = true;
}

void record_start_failure(PodWorker& worker, ContainerRun& run, std::string reason, std::string message, Now now) {
  const bool once = worker.is_ephemeral(run) || containers::restart_policy_of(worker.pod->spec, *run.spec) == "Never";
  if (reason == "RunContainerError" && once) {
    api::ContainerState::Terminated ended;
    ended.exit_code = kStartErrorExitCode;
    ended.reason = "StartError";
    ended.message = std::move(message);
    ended.finished_at = now.wall;
    record_exit(run, std::move(ended), now.mono);
    return;
  }
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = std::move(reason);
  run.waiting_message = std::move(message);
  run.back_off.ask(now.mono, now.mono - run.back_off.delay(), worker.restart_bounds);
  run.retry_at = now.mono + run.back_off.delay();
}

std::string description_of(const api::Pod& pod) {
  return fmt::format("{}_{}({})", pod.metadata.name, pod.metadata.ns, pod.metadata.uid);
}

api::ContainerState::Terminated unseen_end(std::string message) {
  api::ContainerState::Terminated ended;
  ended.exit_code = kKilledExitCode;
  ended.reason = "ContainerStatusUnknown";
  ended.message = std::move(message);
  return ended;
}

}  // namespace spillway::agent
