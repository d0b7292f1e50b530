#include "agent/pods/pod_takeover.h"

#include "agent/containers/container_hash.h"
#include "agent/contract/container_end.h"
#include "agent/pod_state/container_plan.h"
#include "agent/pod_state/pod_status.h"
#include "policy/containers/restart_rules.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace spillway::agent {
namespace {

using Terminated = api::ContainerState::Terminated;

Instant instant_of(WallTime at, Now now) {
  return now.mono - std::max<Duration>(std::chrono::duration_cast<Duration>(now.wall - at), Duration{});
}

/// The end of this very run as the API server already has it, unchanged; else `ended`.
Terminated as_reported(const Terminated& ended, const api::ContainerStatus* reported) {
  if (reported == nullptr) return ended;
  for (const api::ContainerState* state : {&reported->state, &reported->last_state}) {
    if (state->terminated && state->terminated->container_id == ended.container_id) return *state->terminated;
  }
  return ended;
}

std::optional<Terminated> run_before(const FoundContainer& newest, const FoundContainer* before,
                                     const api::ContainerStatus* reported) {
  if (before != nullptr && before->ended) return as_reported(*before->ended, reported);
  if (reported == nullptr) return std::nullopt;
  return reported->container_id == newest.container_id ? reported->last_state.terminated : reported->state.terminated;
}

/// The runtime has forgotten its runs, but their logs are there: the next one writes to none of them. A run that has
/// ended is counted when the next one starts.
void count_by_logs(ContainerRun& run, const FoundPod& found) {
  const auto logged = found.after_logs.find(run.spec->name);
  if (logged == found.after_logs.end()) return;
  run.restart_count = std::max(run.restart_count, run.ended ? logged->second - 1 : logged->second);
}

void take_over_run(ContainerRun& run, const FoundPod& found, const api::ContainerStatus* reported, Now now) {
  const auto is_same = [&](const FoundContainer& each) { return each.name == run.spec->name; };
  const auto newest = std::ranges::find_if(found.containers, is_same);
  if (newest == found.containers.end()) return count_by_logs(run, found);
  // The status reports a run that left no container: restore_containers() has handled it.
  if (reported != nullptr && reported->state.running && reported->restart_count > newest->attempt) return;
  const auto before = std::find_if(newest + 1, found.containers.end(), is_same);
  const bool by_this = newest->hash.empty() ? newest->image == run.spec->image
                                            : newest->hash == container_hash(run.spec->name, run.spec->image);
  run.image = newest->image;
  if (by_this) run.image = run.spec->image;
  if (!by_this && run.image == run.spec->image) run.image.clear();
  run.restart_count = newest->attempt;
  run.container_id = newest->container_id;
  run.image_id = newest->image_id;
  run.started_at = newest->started_at;
  run.running_since = instant_of(newest->started_at, now);
  run.ended_before = run_before(*newest, before == found.containers.end() ? nullptr : &*before, reported);
  run.ended.reset();
  run.ended_at.reset();
  run.state = ContainerRun::State::kRunning;
  if (!newest->ended) return;
  run.state = ContainerRun::State::kExited;
  run.ended = as_reported(*newest->ended, reported);
  run.ended_at = instant_of(newest->ended->finished_at.value_or(now.wall), now);
}

bool starts_again(const api::Pod& pod, const ContainerRun& run) {
  if (!run.ended) return containers::restart_policy_of(pod.spec, *run.spec) != "Never";
  return containers::restarts_after(pod.spec, *run.spec, run.ended->exit_code);
}

}  // namespace

const api::ContainerStatus* reported_status(const api::PodStatus& status, std::string_view container) {
  for (const auto* list :
       {&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses}) {
    const auto found = std::ranges::find(*list, container, &api::ContainerStatus::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

bool is_alive(const FoundPod& found) {
  return found.has_sandbox ||
         std::ranges::any_of(found.containers, [](const FoundContainer& each) { return !each.ended; });
}

void record_found_exit(FoundPod& found, const ContainerExited& event) {
  for (FoundContainer& each : found.containers) {
    if (each.name != event.name || each.attempt != event.attempt) continue;
    each.ended = terminated_by(event);
  }
}

void take_over(PodWorker& worker, FoundPod found, Now now) {
  for (FoundContainer& each : found.containers) {
    if (each.container_id.empty()) each.container_id = container_id(found.uid, each.name, each.attempt);
    if (each.ended && each.ended->container_id.empty()) each.ended->container_id = each.container_id;
  }
  worker.content = PodContent::kCreated;
  worker.sandbox = found.has_sandbox ? PodSandbox::kRuns : PodSandbox::kNone;
  worker.pod_ips = found.ips;
  worker.handler = found.handler;
  for (auto* list : worker.run_lists()) {
    for (ContainerRun& run : *list) {
      take_over_run(run, found, reported_status(worker.pod->status, run.spec->name), now);
    }
  }
  const bool goes_on =
      std::ranges::any_of(worker.containers, [&](const ContainerRun& run) { return starts_again(*worker.pod, run); });
  if (!found.has_sandbox && goes_on) repeat_init_containers(worker);
}

}  // namespace spillway::agent
