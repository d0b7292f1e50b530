#include "agent/pods/container_plan.h"

#include "agent/pods/pod_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {
namespace {

constexpr std::int32_t kKilledExitCode = 137;
constexpr std::int32_t kStartErrorExitCode = 128;
constexpr std::string_view kAlways = "Always";

bool is_init(const PodWorker& worker, const ContainerRun& run) {
  return std::ranges::any_of(worker.init_containers, [&](const ContainerRun& each) { return &each == &run; });
}

std::string_view policy_of(const PodWorker& worker, const ContainerRun& run) {
  if (!is_init(worker, run)) return worker.pod->spec.restart_policy;
  if (api::is_sidecar(*run.spec)) return kAlways;
  return worker.pod->spec.restart_policy == "Never" ? "Never" : "OnFailure";
}

bool in_progress(const ContainerRun& run) {
  return run.state == ContainerRun::State::kStarting || run.state == ContainerRun::State::kRunning;
}

bool is_done(const PodWorker& worker, const ContainerRun& run) {
  return run.state == ContainerRun::State::kExited && run.ended &&
         !restarts(policy_of(worker, run), run.ended->exit_code);
}

/// What makes a definition another one: the name, which does not change, and the image. Init containers that end run
/// on.
bool is_outdated(const PodWorker& worker, const ContainerRun& run) {
  if (run.state != ContainerRun::State::kRunning || run.outdated || run.image == run.spec->image) return false;
  return !is_init(worker, run) || api::is_sidecar(*run.spec);
}

/// Starts a container that is neither in progress nor done, or waits for its back-off.
void start_or_wait(ContainerRun& run, Instant now, ContainerPlan& plan) {
  if (in_progress(run) || run.reading) return;
  if (run.retry_at == Instant::max()) return;  // cannot be started, ever
  if (run.retry_at && *run.retry_at > now) {
    plan.look_again = std::min(*run.retry_at, plan.look_again.value_or(*run.retry_at));
  } else {
    plan.start.push_back(&run);
  }
}

void restore(ContainerRun& run, const std::vector<api::ContainerStatus>& statuses) {
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
  } else if (found->last_state.terminated) {
    run.ended = found->last_state.terminated;
  }
  if (run.ended) {
    run.state = ContainerRun::State::kExited;
    run.back_off = kBackOffMin;
  }
}

}  // namespace

ContainerPlan plan_containers(PodWorker& worker, Instant now) {
  ContainerPlan plan;
  for (auto* list : {&worker.init_containers, &worker.containers}) {
    for (ContainerRun& run : *list) {
      if (is_outdated(worker, run)) plan.stop.push_back(&run);
    }
  }
  const bool regular_started = std::ranges::any_of(
      worker.containers, [](const ContainerRun& run) { return in_progress(run) || run.ended || run.ended_before; });
  for (ContainerRun& run : worker.init_containers) {
    if (api::is_sidecar(*run.spec)) {
      if (run.state == ContainerRun::State::kRunning) continue;
      start_or_wait(run, now, plan);
      if (!regular_started) return plan;
    } else if (!regular_started) {
      if (is_done(worker, run)) {
        if (run.ended->exit_code == 0) continue;
        plan.finished = true;
        return plan;
      }
      start_or_wait(run, now, plan);
      return plan;
    }
  }
  plan.finished = true;
  for (ContainerRun& run : worker.containers) {
    if (is_done(worker, run)) continue;
    plan.finished = false;
    start_or_wait(run, now, plan);
  }
  return plan;
}

void restore_containers(PodWorker& worker) {
  worker.spec_source = worker.pod;
  worker.start_time = worker.pod->status.start_time;
  for (const api::Container& container : worker.spec_source->spec.init_containers) {
    worker.init_containers.emplace_back().spec = &container;
    restore(worker.init_containers.back(), worker.pod->status.init_container_statuses);
  }
  for (const api::Container& container : worker.spec_source->spec.containers) {
    worker.containers.emplace_back().spec = &container;
    restore(worker.containers.back(), worker.pod->status.container_statuses);
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
      !find_all(worker.containers, worker.pod->spec.containers)) {
    return false;  // not the containers it has
  }
  bool changed = false;
  for (const auto& [run, container] : pairs) {
    changed = changed || run->spec->image != container->image;
    run->spec = container;
  }
  worker.spec_source = worker.pod;
  return changed;
}

std::string outdated_message(const PodWorker& worker, const ContainerRun& run) {
  if (is_init(worker, run)) return fmt::format("Init container {} definition changed", run.spec->name);
  return fmt::format("Container {} definition changed, will be restarted", run.spec->name);
}

void record_exit(PodWorker& worker, ContainerRun& run, api::ContainerState::Terminated ended, Now now) {
  const Duration ran = run.running_since ? now.mono - *run.running_since : Duration{};
  run.state = ContainerRun::State::kExited;
  run.ended = std::move(ended);
  run.retry_at.reset();
  if (std::exchange(run.outdated, false)) {  // whatever its policy: by the new definition, with a back-off of its own
    run.state = ContainerRun::State::kWaiting;
    run.waiting_reason = "ContainerCreating";
    run.waiting_message.clear();
    run.back_off = {};
    return;
  }
  if (!restarts(policy_of(worker, run), run.ended->exit_code)) return;
  const Duration wait = ran >= kBackOffForgetAfter ? Duration{} : run.back_off;
  run.back_off = next_back_off(run.back_off, ran);
  if (wait == Duration{}) return;
  run.retry_at = now.mono + wait;
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = "CrashLoopBackOff";
  run.waiting_message =
      fmt::format("back-off {} restarting failed container={} pod={}_{}({})",
                  wait < minutes(1) ? fmt::format("{}s", std::chrono::duration_cast<seconds>(wait).count())
                                    : fmt::format("{}m{}s", std::chrono::duration_cast<minutes>(wait).count(),
                                                  std::chrono::duration_cast<seconds>(wait).count() % 60),
                  run.spec->name, worker.pod->metadata.name, worker.pod->metadata.ns, worker.uid());
}

void record_start_failure(PodWorker& worker, ContainerRun& run, std::string reason, std::string message, Now now) {
  if (reason == "RunContainerError" && !restarts(policy_of(worker, run), kStartErrorExitCode)) {
    api::ContainerState::Terminated ended;
    ended.exit_code = kStartErrorExitCode;
    ended.reason = "StartError";
    ended.message = std::move(message);
    ended.finished_at = now.wall;
    record_exit(worker, run, std::move(ended), now);
    return;
  }
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = std::move(reason);
  run.waiting_message = std::move(message);
  run.back_off = next_back_off(run.back_off, {});
  run.retry_at = now.mono + run.back_off;
}

api::ContainerState::Terminated unseen_end(std::string message) {
  api::ContainerState::Terminated ended;
  ended.exit_code = kKilledExitCode;
  ended.reason = "ContainerStatusUnknown";
  ended.message = std::move(message);
  return ended;
}

}  // namespace spillway::agent
