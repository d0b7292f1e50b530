#include "agent/pods/pod_status.h"

#include "agent/pods/pod_phase.h"
#include "api/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::agent {
namespace {

using api::Json;
using api::PodCondition;

constexpr std::string_view kTrue = "True";
constexpr std::string_view kFalse = "False";

/// Fields of a status that are the agent's; the rest belongs to others.
constexpr std::array<std::string_view, 9> kOwnFields{"phase",
                                                     "reason",
                                                     "message",
                                                     "hostIP",
                                                     "podIP",
                                                     "qosClass",
                                                     "startTime",
                                                     "containerStatuses",
                                                     "initContainerStatuses"};

api::ContainerStatus status_of(const PodWorker& worker, const ContainerRun& run) {
  api::ContainerStatus status;
  status.name = run.spec->name;
  const bool waits = run.state == ContainerRun::State::kWaiting || run.state == ContainerRun::State::kStarting;
  status.image = waits || run.image.empty() ? run.spec->image : run.image;
  status.restart_count = run.restart_count;
  switch (run.state) {
    case ContainerRun::State::kWaiting:
    case ContainerRun::State::kStarting:
      status.state.waiting = {run.waiting_reason, run.waiting_message};
      status.last_state.terminated = run.ended ? run.ended : run.ended_before;
      break;
    case ContainerRun::State::kRunning:
      status.state.running = {run.started_at};
      if (run.ended_before) status.last_state.terminated = run.ended_before;
      break;
    case ContainerRun::State::kExited:
      status.state.terminated = run.ended;
      if (run.ended_before) status.last_state.terminated = run.ended_before;
      break;
  }
  const bool running = run.state == ContainerRun::State::kRunning;
  const bool completed = run.state == ContainerRun::State::kExited && run.ended && run.ended->exit_code == 0;
  const bool runs_first = std::ranges::any_of(
      worker.init_containers, [&](const ContainerRun& each) { return &each == &run && !api::is_sidecar(*each.spec); });
  status.ready = runs_first ? completed : running;
  status.started = running;
  if (running) status.container_id = container_id(worker.uid(), run.spec->name, run.restart_count);
  if (!running && run.ended) status.container_id = run.ended->container_id;
  return status;
}

PodCondition condition(std::string_view type, bool holds, std::string reason = {}, std::string message = {}) {
  return {.type = std::string(type),
          .status = std::string(holds ? kTrue : kFalse),
          .reason = std::move(reason),
          .message = std::move(message),
          .last_probe_time = {},
          .last_transition_time = {}};
}

std::string names_of(const std::vector<api::ContainerStatus>& statuses, bool (*wanted)(const api::ContainerStatus&)) {
  std::string names;
  for (const api::ContainerStatus& status : statuses) {
    if (!wanted(status)) continue;
    if (!names.empty()) names += ' ';
    names += status.name;
  }
  return names;
}

PodCondition initialized_condition(const PodWorker& worker, const api::PodStatus& status) {
  std::string incomplete;
  for (std::size_t i = 0; i < worker.init_containers.size(); ++i) {
    const ContainerRun& run = worker.init_containers[i];
    const bool done =
        api::is_sidecar(*run.spec) ? run.running_since.has_value() : status.init_container_statuses[i].ready;
    if (done) continue;
    if (!incomplete.empty()) incomplete += ' ';
    incomplete += run.spec->name;
  }
  if (incomplete.empty() || status.phase == "Succeeded") {
    return condition("Initialized", true, status.phase == "Succeeded" ? "PodCompleted" : "");
  }
  return condition("Initialized", false, "ContainersNotInitialized",
                   fmt::format("containers with incomplete status: [{}]", incomplete));
}

PodCondition ready_condition(std::string_view type, const api::PodStatus& status) {
  if (status.phase == "Succeeded") return condition(type, false, "PodCompleted");
  if (status.phase == "Failed") return condition(type, false, "PodFailed");
  const std::string unready =
      names_of(status.container_statuses, [](const api::ContainerStatus& each) { return !each.ready; });
  if (unready.empty()) return condition(type, true);
  return condition(type, false, "ContainersNotReady", fmt::format("containers with unready status: [{}]", unready));
}

void keep_transition_times(std::vector<PodCondition>& conditions, const std::vector<PodCondition>& before,
                           WallTime now) {
  for (PodCondition& each : conditions) {
    const PodCondition* old = api::find_condition(before, each.type);
    const bool same = old != nullptr && old->status == each.status && old->last_transition_time;
    each.last_transition_time = same ? old->last_transition_time : now;
  }
}

Json conditions_patch(const std::vector<PodCondition>& reported, const std::vector<PodCondition>& wanted) {
  api::PodStatus holder;
  for (const PodCondition& each : wanted) {
    const PodCondition* old = api::find_condition(reported, each.type);
    if (old == nullptr || old->status != each.status || old->reason != each.reason || old->message != each.message) {
      holder.conditions.push_back(each);
    }
  }
  if (holder.conditions.empty()) return {};
  Json list = *api::encode(holder).find("conditions");
  for (Json& element : *list.if_array()) {
    const PodCondition* old = api::find_condition(reported, element.string_at({"type"}));
    if (old == nullptr) continue;
    for (const std::string_view key : {"reason", "message"}) {
      if (element.find(key) == nullptr) element[key] = nullptr;  // else the merge would keep the old text
    }
  }
  return list;
}

}  // namespace

std::string container_id(const std::string& uid, const std::string& container, std::int32_t attempt) {
  return fmt::format("process://{}/{}/{}", uid, container, attempt);
}

api::PodStatus compute_status(const PodWorker& worker, const PodAddresses& addresses, WallTime now) {
  api::PodStatus status;
  status.qos_class = to_string(api::qos_of(*worker.pod));
  status.host_ip = addresses.host_ip;
  status.start_time = worker.start_time;
  for (const ContainerRun& run : worker.init_containers) {
    status.init_container_statuses.push_back(status_of(worker, run));
  }
  for (const ContainerRun& run : worker.containers) status.container_statuses.push_back(status_of(worker, run));
  const bool any_started =
      std::ranges::any_of(worker.containers, [](const ContainerRun& run) { return run.running_since || run.ended; });
  if (any_started || std::ranges::any_of(worker.init_containers,
                                         [](const ContainerRun& run) { return run.running_since || run.ended; })) {
    status.pod_ip = addresses.pod_ip;
  }

  std::vector<api::ContainerStatus> all = status.init_container_statuses;
  all.insert(all.end(), status.container_statuses.begin(), status.container_statuses.end());
  const bool terminated = worker.phase == WorkerPhase::kTerminated;
  status.phase = phase_of(*worker.pod, all, terminated ? PodProgress::kTerminal : PodProgress::kOngoing);
  const bool terminal = status.phase == "Succeeded" || status.phase == "Failed";
  if (terminated && !terminal && !api::is_static(*worker.pod)) status.phase = "Failed";
  if (!terminated && terminal) status.phase = worker.status.phase.empty() ? "Running" : worker.status.phase;
  if (terminated && worker.forced_end) {
    admission::mark_ended(status, worker.forced_end->ending);
  }
  if (terminated && !worker.forced_end && api::is_terminal(*worker.pod)) {  // what somebody else decided stays
    status.phase = worker.pod->status.phase;
    status.reason = worker.pod->status.reason;
    status.message = worker.pod->status.message;
  }
  status.conditions.push_back(condition("PodReadyToStartContainers", worker.created && !terminated));
  status.conditions.push_back(initialized_condition(worker, status));
  status.conditions.push_back(ready_condition("Ready", status));
  status.conditions.push_back(ready_condition("ContainersReady", status));
  status.conditions.push_back(condition("PodScheduled", true));
  keep_transition_times(status.conditions, worker.status.conditions, now);
  return status;
}

Json status_patch(const std::string& uid, const api::PodStatus& reported, const api::PodStatus& wanted) {
  const Json before = api::encode(reported);
  const Json after = api::encode(wanted);
  Json changes = Json::object();
  for (const std::string_view field : kOwnFields) {
    const Json* old_value = before.find(field);
    const Json* new_value = after.find(field);
    if (new_value == nullptr) {
      if (old_value == nullptr) continue;
      changes[field] = nullptr;
      if (field == "podIP") changes["podIPs"] = nullptr;  // the first of them is the one above
      if (field == "hostIP") changes["hostIPs"] = nullptr;
    } else if (old_value == nullptr || *old_value != *new_value) {
      changes[field] = *new_value;
      if (field == "podIP") changes["podIPs"] = Json::array({Json::object({{"ip", *new_value}})});
      if (field == "hostIP") changes["hostIPs"] = Json::array({Json::object({{"ip", *new_value}})});
    }
  }
  Json conditions = conditions_patch(reported.conditions, wanted.conditions);
  if (!conditions.is_null()) changes["conditions"] = std::move(conditions);
  if (changes.if_object()->empty()) return {};
  return Json::object({{"metadata", Json::object({{"uid", uid}})}, {"status", std::move(changes)}});
}

}  // namespace spillway::agent
