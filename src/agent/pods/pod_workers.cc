#include "agent/pods/pod_workers.h"

#include "agent/containers/pod_resources.h"
#include "agent/contract/kill_grace.h"
#include "agent/pod_state/container_plan.h"
#include "agent/pod_state/pod_addresses.h"
#include "agent/pod_state/pod_status.h"
#include "base/check.h"
#include "policy/admission/arrival.h"

#include <algorithm>
#include <functional>

namespace spillway::agent {

PodWorkers::PodWorkers(AgentContext& context, Rng rng, ResourceManagers& managers, PodVolumes& volumes,
                       std::function<admission::NodeSituation()> situation, std::span<const JournalEntry> history,
                       DecisionLog& decisions, ResourceBooks books, telemetry::Registry* metrics)
    : context_(context),
      managers_(managers),
      volumes_(volumes),
      events_(context.events),
      found_(context),
      calls_(context),
      hooks_(context, calls_, pods_, events_),
      stops_(context, pods_, events_, hooks_),
      probes_(context, rng, calls_, pods_, events_, *this),
      timers_(
          context.api, pods_, [this](PodWorker& worker, Now now) { sync(worker, now); },
          [this](PodWorker& worker, Now now) { exceed_deadline(worker, now); }),
      sandboxes_(context, pods_, events_, timers_, *this),
      stop_(context, pods_, volumes, events_, timers_, hooks_, *this),
      lifecycle_(pods_, events_, hooks_, probes_, stops_, stop_, *this),
      status_(context,
              [this](const std::string& uid, Now now) {
                PodWorker* worker = pods_.find(uid);
                if (worker != nullptr) removal_.advance(*worker, now);
              }),
      removal_(context, pods_, status_, [this](const std::string& uid, Now now) { forget(uid, now); }),
      admission_(context, situation, *this, decisions, metrics),
      resizes_(context, situation, *this, std::move(books), metrics),
      creation_(context, resizes_, volumes, events_),
      starts_(context, managers, volumes.allocatable(), pods_, events_, timers_, resizes_, *this,
              [this](const ContainerStartFailed& event, Now now) { lifecycle_.on_start_failed(event, now); }) {
  for (const JournalEntry& entry : history) {
    if (entry.eviction) decided_before_.insert_or_assign(entry.eviction->uid, evicted(*entry.eviction));
  }
}

void PodWorkers::start(const client::ObjectCache<api::Pod>& pods, Now now) {
  SPILLWAY_CHECK(!started_);
  started_ = true;
  probes_.start(now);
  std::vector<std::shared_ptr<const api::Pod>> arrivals;
  for (const auto& [key, pod] : pods.all()) {
    if (!api::is_mirror(*pod)) arrivals.push_back(pod);
  }
  admission::sort_arrivals(arrivals);  // ties stay in namespace/name order
  for (const auto& pod : arrivals) seen(pod, now);
  admission_.ask(now);
  decided_before_.clear();
}

void PodWorkers::on_pod(const client::ObjectCache<api::Pod>::Ptr& before,
                        const client::ObjectCache<api::Pod>::Ptr& after, Now now) {
  if (!started_) return;
  if (before && (!after || after->metadata.uid != before->metadata.uid)) gone(before->metadata.uid, now);
  if (after && !api::is_mirror(*after)) seen(after, now);
  admission_.ask(now);
}

void PodWorkers::add_static(const std::shared_ptr<const api::Pod>& pod, Now now) {
  add(pod, now);
  admission_.ask(now);
}

void PodWorkers::retire(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || std::exchange(worker->object, PodObject::kRetired) == PodObject::kRetired) return;
  if (worker->phase == WorkerPhase::kTerminated) {
    forget(uid, now);
  } else if (worker->phase != WorkerPhase::kTerminating) {
    stop_.begin(*worker, now);
  }
}

void PodWorkers::set_mirror(const std::string& uid, const client::ObjectCache<api::Pod>::Ptr& mirror, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr) return;
  if (!mirror) return status_.lose(uid);
  status_.observe(uid, *mirror);
  resume_static(*worker, mirror->status, now);
  if (worker->phase != WorkerPhase::kWaiting) status_.want(uid, worker->status, now);
}

void PodWorkers::seen(const std::shared_ptr<const api::Pod>& pod, Now now) {
  status_.observe(pod->metadata.uid, *pod);
  PodWorker* worker = pods_.find(pod->metadata.uid);
  if (worker == nullptr) {
    add(pod, now);
    return;
  }
  worker->latest = pod;
  worker->pod = resizes_.with_allocation(pod);
  switch (worker->phase) {
    case WorkerPhase::kWaiting:
      if (pod->metadata.deletion_timestamp || api::is_terminal(*pod)) stop_.begin(*worker, now);
      break;
    case WorkerPhase::kSyncing:
      if (pod->metadata.deletion_timestamp || api::is_terminal(*pod)) {
        stop_.begin(*worker, now);
      } else {
        timers_.arm_deadline(*worker);
        volumes_.update(worker->pod, now);
        adopt_definitions(*worker) ? sync(*worker, now) : report(*worker, now);
        resizes_.observe(pod, now);
      }
      break;
    case WorkerPhase::kTerminating:
      stop_.shorten_grace(*worker);
      report(*worker, now);
      break;
    case WorkerPhase::kTerminated:
      status_.want(worker->uid(), worker->status, now);
      removal_.advance(*worker, now);
      break;
  }
}

void PodWorkers::add(const std::shared_ptr<const api::Pod>& pod, Now now) {
  context_.log.info(
      "syncloop add",
      {{"source", api::is_static(*pod) ? "file" : "api"}, {"pod", pod->key().text()}, {"pod_uid", pod->metadata.uid}});
  PodWorker& worker = pods_.add(pod->metadata.uid);
  worker.latest = pod;
  worker.pod = resizes_.with_allocation(pod);
  const Duration longest = context_.options.restart_delay_max;
  worker.restart_bounds = {.first = std::min<Duration>(containers::BackOffBounds().first, longest), .longest = longest};
  worker.needs_sandbox =
      context_.machine.runs_images || has_pod_network(*pod, context_.machine) || !pod->spec.runtime_class_name.empty();
  worker.status = pod->status;
  restore_containers(worker, now.mono);
  const bool alive = claim(worker, now);
  if (api::is_terminal(*pod)) {
    if (alive) return stop_.begin(worker, now);
    worker.phase = WorkerPhase::kTerminated;
    status_.want(worker.uid(), worker.status, now);
    if (decided_before_.contains(pod->metadata.uid)) removal_.remove_content(worker);
    removal_.advance(worker, now);
    return;
  }
  if (const auto decided = decided_before_.find(pod->metadata.uid); decided != decided_before_.end()) {
    worker.forced_end = decided->second;
    worker.content = PodContent::kCreated;
    stop_.begin(worker, now);
    return;
  }
  const bool asked_to_end = pod->metadata.deletion_timestamp.has_value();
  if (admission::arrival_of(*pod, {.termination_requested = asked_to_end}) == admission::Arrival::kNotStarted) {
    stop_.begin(worker, now);
    return;
  }
  admission_.add(pod->metadata.uid);
}

void PodWorkers::begin(const std::string& uid, Now now) {
  PodWorker& worker = *pods_.find(uid);
  worker.phase = WorkerPhase::kSyncing;
  adopt_definitions(worker);  // definitions may have changed while it waited
  if (!worker.start_time) worker.start_time = now.wall;
  worker.active_since = now.mono - std::max<Duration>(now.wall - *worker.start_time, Duration{});
  const std::optional<Instant> deadline = active_deadline(*worker.pod, worker.active_since);
  if (deadline && *deadline <= now.mono) return exceed_deadline(worker, now);
  timers_.arm_deadline(worker);
  const bool existed = worker.content == PodContent::kCreated;
  const std::shared_ptr<const api::Pod> latest = worker.latest;
  resizes_.begin(latest, existed ? PodResizes::Existed::kYes : PodResizes::Existed::kNo, now);
  creation_.create(worker, now);
  probes_.add(*worker.pod, now);
  sync(worker, now);
  resizes_.observe(latest, now);
}

void PodWorkers::on_resize(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kSyncing) return;
  worker->pod = resizes_.with_allocation(worker->latest);
  adopt_definitions(*worker);
  sync(*worker, now);
}

void PodWorkers::refuse(const std::string& uid, const admission::Refusal& refusal, Now now) {
  PodWorker& worker = *pods_.find(uid);
  if (worker.phase == WorkerPhase::kWaiting && worker.content == PodContent::kCreated) {  // the pod existed before
    events_.record(worker, {}, client::EventType::kWarning, refusal.reason, refusal.message, now);
    const api::PodStatus status = admission::refused_status(*worker.pod, refusal);
    return stop_.force(worker,
                       {.ending = {status.phase, status.reason, status.message, {}}, .grace_period_seconds = {}}, now);
  }
  managers_.release(uid);
  worker.content = PodContent::kNever;
  worker.phase = WorkerPhase::kTerminated;
  worker.status = admission::refused_status(*worker.pod, refusal);
  events_.record(worker, {}, client::EventType::kWarning, refusal.reason, refusal.message, now);
  status_.want(worker.uid(), worker.status, now);
}

void PodWorkers::reject_admitted(const std::string& uid, const admission::Refusal& refusal, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kSyncing) return;
  timers_.cancel(*worker);
  probes_.remove(uid);
  calls_.forget(uid);
  volumes_.remove(uid);
  context_.host_commands.emplace_back(RemovePod{uid});
  refuse(uid, refusal, now);
  notices_.add([this, uid, now] {
    if (on_finished_) on_finished_(uid, now);
  });
  admission_.on_finished(uid, now);
}

void PodWorkers::sync(PodWorker& worker, Now now) {
  probes_.apply(worker);
  resizes_.advance(worker, now);
  const ContainerPlan plan = plan_containers(worker, probes_.results_of(worker), now.mono);
  for (const PlannedStop& each : plan.stop) stops_.stop(worker, each, now);
  if (worker.sandbox == PodSandbox::kLost && !plan.finished) stops_.stop_in_lost_sandbox(worker, now);
  for (const ContainerRun* run : plan.backs_off) {
    events_.record(worker, run->spec->name, client::EventType::kWarning, "BackOff",
                   containers::back_off_event(run->spec->name, description_of(*worker.pod)), now);
  }
  if (volumes_.is_ready(worker.uid()) && (plan.start.empty() || sandboxes_.ensure(worker, now))) {
    starts_.start(worker, plan.start, now);
  }
  if (plan.finished) {
    stop_.begin(worker, now);
    return;
  }
  if (plan.requeue_at) timers_.arm_retry(worker, *plan.requeue_at);
  report(worker, now);
}

void PodWorkers::on_volumes_ready(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker != nullptr && worker->phase == WorkerPhase::kSyncing) sync(*worker, now);
}

void PodWorkers::report(PodWorker& worker, Now now) {
  if (worker.content == PodContent::kNever) return;
  probes_.apply(worker);
  worker.status =
      compute_status(worker, addresses_of(worker, context_.machine), now.wall, resizes_.report_of(worker.uid()));
  if (worker.object != PodObject::kGone) status_.want(worker.uid(), worker.status, now);
}

}  // namespace spillway::agent
