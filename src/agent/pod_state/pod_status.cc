#include "agent/pod_state/pod_status.h"

#include "agent/pod_state/container_plan.h"
#include "api/codec/codec.h"
#include "api/object/pod_requests.h"
#include "policy/containers/container_statuses.h"
#include "policy/containers/pod_conditions.h"
#include "policy/containers/pod_phase.h"
#include "policy/containers/pod_resize.h"
#include "policy/containers/restart_rules.h"
#include "policy/containers/utf8_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace spillway::agent {
namespace {

using api::Json;
using api::PodCondition;

/// Fields of a status that are the agent's; the rest belongs to others.
constexpr std::array<std::string_view, 13> kOwnFields{"observedGeneration",
                                                      "phase",
                                                      "reason",
                                                      "message",
                                                      "hostIP",
                                                      "podIP",
                                                      "qosClass",
                                                      "startTime",
                                                      "resources",
                                                      "allocatedResources",
                                                      "containerStatuses",
                                                      "ephemeralContainerStatuses",
                                                      "initContainerStatuses"};

using containers::Instance;
using containers::InstanceReport;

InstanceReport report_of(const ContainerRun& run, const api::ContainerState::Terminated& ended) {
  InstanceReport made;
  made.instance = {.id = {},
                   .name = run.spec->name,
                   .state = Instance::State::kExited,
                   .exit_code = ended.exit_code,
                   .reason = ended.reason,
                   .outdated = false};
  made.container_id = ended.container_id;
  made.image = run.image.empty() ? run.spec->image : run.image;
  made.image_id = run.image_id;
  made.restart_count = run.restart_count;
  made.started_at = ended.started_at;
  made.finished_at = ended.finished_at;
  made.signal = ended.signal;
  made.message = ended.message;
  return made;
}

/// The instances of the container, newest first.
std::vector<InstanceReport> reports_of(const PodWorker& worker, const ContainerRun& run) {
  std::vector<InstanceReport> made;
  if (run.state == ContainerRun::State::kRunning) {
    InstanceReport& newest = made.emplace_back();
    newest.instance.name = run.spec->name;
    newest.instance.state = Instance::State::kRunning;
    newest.container_id =
        run.container_id.empty() ? container_id(worker.uid(), run.spec->name, run.restart_count) : run.container_id;
    newest.image_id = run.image_id;
    newest.image = run.image.empty() ? run.spec->image : run.image;
    newest.restart_count = run.restart_count;
    newest.started_at = run.started_at;
  }
  if (run.ended) made.push_back(report_of(run, *run.ended));
  if (run.ended_before) made.push_back(report_of(run, *run.ended_before));
  return made;
}

/// True for a container that the runtime reports as waiting: it has ended, or was never started.
bool waits(const ContainerRun& run) {
  return run.state == ContainerRun::State::kWaiting || run.state == ContainerRun::State::kStarting;
}

/// A container that has never started reports PodInitializing while init containers run, else ContainerCreating.
std::string_view waiting_reason(const PodWorker& worker, const ContainerRun& run) {
  const bool begins = run.waiting_reason == "ContainerCreating" && !run.ended && !run.ended_before;
  return begins && !worker.init_containers.empty() ? "PodInitializing" : std::string_view(run.waiting_reason);
}

std::vector<api::ContainerStatus> statuses_of(const PodWorker& worker, containers::ContainerKind kind,
                                              const std::vector<ContainerRun>& runs,
                                              const std::vector<api::ContainerStatus>& before) {
  std::vector<InstanceReport> reports;
  for (const ContainerRun& run : runs) std::ranges::move(reports_of(worker, run), std::back_inserter(reports));
  auto statuses = containers::container_statuses(*worker.spec_source, kind, reports, before, {});
  for (api::ContainerStatus& status : statuses) {
    const ContainerRun& run = *worker.find_run(status.name);
    if (waits(run)) {
      if (status.state.terminated) status.last_state = status.state;
      status.state = {};
      status.state.waiting = {std::string(waiting_reason(worker, run)), run.waiting_message};
      status.image = run.spec->image;
    }
    status.restart_count = run.restart_count;
    if (kind == containers::ContainerKind::kEphemeral) continue;  // readiness does not apply
    const bool completed = status.state.terminated && status.state.terminated->exit_code == 0;
    const bool runs_first = kind == containers::ContainerKind::kInit && !api::is_sidecar(*run.spec);
    status.ready = runs_first ? completed : run.ready;
    status.started = run.started;
  }
  return statuses;
}

/// True for a container that ran, or runs, in the sandbox that its pod has now.
bool began_in_sandbox(const PodWorker& worker, const ContainerRun& run) {
  if (!run.running_since && !run.ended && !run.ended_before) return false;
  if (!worker.sandbox_ran_at) return true;
  const std::optional<Instant> began = run.running_since ? run.running_since : run.ended_at;
  return began && *began >= *worker.sandbox_ran_at;
}

containers::Initialized initialized_of(const PodWorker& worker) {
  const bool began =
      std::ranges::any_of(worker.containers, [&](const ContainerRun& run) { return began_in_sandbox(worker, run); });
  return began ? containers::Initialized::kYes : containers::Initialized::kNo;
}

/// A pod whose containers all restart in place stays initialized.
void keep_initialized(const PodWorker& worker, std::vector<PodCondition>& conditions) {
  if (!api::may_restart_all(worker.pod->spec)) return;
  const PodCondition* before = api::find_condition(worker.status.conditions, "Initialized");
  const auto now = std::ranges::find(conditions, "Initialized", &PodCondition::type);
  if (before != nullptr && before->status == "True" && now != conditions.end()) *now = *before;
}

/// Together they fit into the bounds of a status.
void cut_messages(api::PodStatus& status) {
  const std::array lists = {&status.init_container_statuses, &status.container_statuses,
                            &status.ephemeral_container_statuses};
  std::size_t count = 0;
  for (const auto* list : lists) count += list->size();
  if (count == 0) return;
  const std::size_t most = containers::kMessagesOfPodMax / count;
  for (auto* list : lists) {
    for (api::ContainerStatus& each : *list) {
      for (auto* state : {&each.state, &each.last_state}) {
        if (!state->terminated || state->terminated->message.size() <= most) continue;
        state->terminated->message = containers::utf8_text(state->terminated->message.substr(0, most));
      }
    }
  }
}

void keep_transition_times(std::vector<PodCondition>& conditions, const std::vector<PodCondition>& before,
                           WallTime now) {
  for (PodCondition& each : conditions) {
    const PodCondition* old = api::find_condition(before, each.type);
    const bool same = old != nullptr && old->status == each.status && old->last_transition_time;
    each.last_transition_time = same ? old->last_transition_time : now;
  }
}

/// cpu and memory as they are in force, the rest as it is allocated.
void put_in_force(api::ResourceList& allocated, const api::ResourceList& actuated) {
  for (const std::string_view resource : {"cpu", "memory"}) {
    const auto found = actuated.find(resource);
    if (found != actuated.end()) {
      allocated.insert_or_assign(std::string(resource), found->second);
    } else if (const auto extra = allocated.find(resource); extra != allocated.end()) {
      allocated.erase(extra);
    }
  }
}

/// A container that does not run has the resources that are allocated to it.
void add_resources(std::vector<api::ContainerStatus>& statuses, const ResizeReport& resize) {
  for (api::ContainerStatus& status : statuses) {
    const auto allocated = resize.allocated->containers.find(status.name);
    if (allocated == resize.allocated->containers.end()) continue;
    status.allocated_resources = allocated->second.requests;
    status.resources = allocated->second;
    if (!status.state.running || resize.actuated == nullptr) continue;
    const auto actuated = resize.actuated->containers.find(status.name);
    if (actuated == resize.actuated->containers.end()) continue;
    put_in_force(status.resources->requests, actuated->second.requests);
    put_in_force(status.resources->limits, actuated->second.limits);
  }
}

void add_pod_resources(api::PodStatus& status, const PodWorker& worker, const ResizeReport& resize) {
  if (resize.allocated == nullptr) return;
  add_resources(status.init_container_statuses, resize);
  add_resources(status.container_statuses, resize);
  if (!resize.allocated->whole) return;
  status.allocated_resources = api::effective_requests(worker.pod->spec);
  status.resources =
      resize.actuated != nullptr && resize.actuated->whole ? resize.actuated->whole : resize.allocated->whole;
}

bool says_the_same(const PodCondition& a, const PodCondition& b) {
  return a.status == b.status && a.reason == b.reason && a.message == b.message;
}

/// True for conditions that are left out of the status instead of being False.
bool is_about_resize(const PodCondition& condition) {
  return condition.type == containers::kPodResizePending || condition.type == containers::kPodResizeInProgress;
}

/// A generation alone is no reason to write a condition: it is written with the rest of the status.
Json conditions_patch(const std::vector<PodCondition>& reported, const std::vector<PodCondition>& wanted,
                      bool rest_changes) {
  const auto reported_as = [&reported](const PodCondition& each) { return api::find_condition(reported, each.type); };
  const bool writes = rest_changes || std::ranges::any_of(wanted, [&](const PodCondition& each) {
                        const PodCondition* old = reported_as(each);
                        return old == nullptr || !says_the_same(*old, each);
                      });
  const bool resize_ends = std::ranges::any_of(reported, [&](const PodCondition& each) {
    return is_about_resize(each) && api::find_condition(wanted, each.type) == nullptr;
  });
  if (!writes && !resize_ends) return {};
  api::PodStatus holder;
  for (const PodCondition& each : wanted) {
    const PodCondition* old = reported_as(each);
    if (old == nullptr || !says_the_same(*old, each) || old->observed_generation != each.observed_generation) {
      holder.conditions.push_back(each);
    }
  }
  if (holder.conditions.empty() && !resize_ends) return {};
  Json list = holder.conditions.empty() ? Json::array() : *api::encode(holder).find("conditions");
  for (Json& element : *list.if_array()) {
    const PodCondition* old = api::find_condition(reported, element.string_at({"type"}));
    if (old == nullptr) continue;
    for (const std::string_view key : {"reason", "message"}) {
      if (element.find(key) == nullptr) element[key] = nullptr;  // else the merge would keep the old text
    }
  }
  for (const PodCondition& each : reported) {
    if (!is_about_resize(each) || api::find_condition(wanted, each.type) != nullptr) continue;
    list.if_array()->push_back(Json::object({{"$patch", "delete"}, {"type", each.type}}));
  }
  return list;
}

/// Lists of addresses are merged: one that is none any more has to be taken out.
Json address_list(const Json* before, const Json& now) {
  Json list = Json::array({Json::object({{"ip", now}})});
  if (before != nullptr) list.if_array()->push_back(Json::object({{"$patch", "delete"}, {"ip", *before}}));
  return list;
}

}  // namespace

std::string container_id(const std::string& uid, const std::string& container, std::int32_t attempt) {
  return fmt::format("process://{}/{}/{}", uid, container, attempt);
}

api::PodStatus compute_status(const PodWorker& worker, const PodAddresses& addresses, WallTime now,
                              const ResizeReport& resize) {
  api::PodStatus status;
  status.qos_class = to_string(api::qos_of(*worker.pod));
  status.host_ip = addresses.host_ip;
  status.start_time = worker.start_time;
  status.init_container_statuses = statuses_of(worker, containers::ContainerKind::kInit, worker.init_containers,
                                               worker.status.init_container_statuses);
  status.container_statuses =
      statuses_of(worker, containers::ContainerKind::kRegular, worker.containers, worker.status.container_statuses);
  status.ephemeral_container_statuses =
      statuses_of(worker, containers::ContainerKind::kEphemeral, worker.ephemeral_containers,
                  worker.status.ephemeral_container_statuses);
  cut_messages(status);
  add_pod_resources(status, worker, resize);
  const bool any_started =
      std::ranges::any_of(worker.containers, [](const ContainerRun& run) { return run.running_since || run.ended; });
  if (any_started || std::ranges::any_of(worker.init_containers,
                                         [](const ContainerRun& run) { return run.running_since || run.ended; })) {
    const auto pod_ips = containers::pod_addresses(*worker.pod, {addresses.pod_ip}, {addresses.host_ip});
    status.pod_ip = pod_ips.front();
  }

  std::vector<api::ContainerStatus> all = status.init_container_statuses;
  all.insert(all.end(), status.container_statuses.begin(), status.container_statuses.end());
  const bool terminated = worker.phase == WorkerPhase::kTerminated;
  status.phase = containers::phase_of(
      *worker.pod, all, terminated ? containers::PodProgress::kTerminal : containers::PodProgress::kOngoing,
      initialized_of(worker));
  const bool terminal = status.phase == "Succeeded" || status.phase == "Failed";
  if (terminated && !terminal && !api::is_static(*worker.pod)) status.phase = "Failed";
  if (!terminated && terminal) status.phase = worker.status.phase.empty() ? "Running" : worker.status.phase;
  if (terminated && worker.forced_end) {
    admission::mark_ended(status, worker.forced_end->ending);
  }
  if (terminated && !worker.forced_end) {  // a status decided elsewhere is kept
    containers::ReportedPhase ending = containers::resolve_phase(*worker.pod, worker.pod->status, status.phase);
    status.phase = std::move(ending.phase);
    status.reason = std::move(ending.reason);
    status.message = std::move(ending.message);
  }
  const bool has_sandbox = (!worker.needs_sandbox || worker.sandbox == PodSandbox::kRuns) &&
                           containers::is_sandbox_usable(*worker.pod, sandboxes_of(worker));
  std::ranges::move(containers::pod_conditions(*worker.pod, status, has_sandbox),
                    std::back_inserter(status.conditions));
  keep_initialized(worker, status.conditions);
  keep_transition_times(status.conditions, worker.status.conditions, now);
  status.observed_generation = worker.pod->metadata.generation;
  for (PodCondition& each : status.conditions) each.observed_generation = status.observed_generation;
  if (worker.phase == WorkerPhase::kSyncing)
    status.conditions.insert(status.conditions.begin(), resize.conditions.begin(), resize.conditions.end());
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
      if (field == "podIP") changes["podIPs"] = nullptr;  // podIP is the first of podIPs
      if (field == "hostIP") changes["hostIPs"] = nullptr;
    } else if (old_value == nullptr || *old_value != *new_value) {
      changes[field] = *new_value;
      if (field == "podIP") changes["podIPs"] = address_list(old_value, *new_value);
      if (field == "hostIP") changes["hostIPs"] = address_list(old_value, *new_value);
    }
  }
  Json conditions = conditions_patch(reported.conditions, wanted.conditions, !changes.if_object()->empty());
  if (!conditions.is_null()) changes["conditions"] = std::move(conditions);
  if (changes.if_object()->empty()) return {};
  return Json::object({{"metadata", Json::object({{"uid", uid}})}, {"status", std::move(changes)}});
}

}  // namespace spillway::agent
