#include "agent/pods/pod_workers.h"

#include "agent/containers/dns_config.h"
#include "agent/containers/pod_resources.h"
#include "agent/contract/container_end.h"
#include "agent/contract/kill_grace.h"
#include "agent/pods/container_plan.h"
#include "agent/pods/pod_sandbox.h"
#include "agent/pods/pod_status.h"
#include "agent/pods/pod_takeover.h"
#include "base/check.h"
#include "policy/admission/apparmor.h"
#include "policy/admission/arrival.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <set>
#include <tuple>

namespace spillway::agent {
namespace {

constexpr Duration kSyncRetry = seconds(10);  // until a container that could not be configured is tried again

// Arguments and environments of a pod's containers. After so many bytes the next container of the pod is left to a
// later turn, so that a pod of a thousand containers holds up nothing else for longer than one takes; after one that
// was refused as too large, much later: it took longest, and is tried again. All that run at a time are held in memory.
constexpr std::size_t kTurnBytesMax = 2 * kExecBytesMax;
constexpr std::size_t kPodBytesMax = 4 * kExecBytesMax;
constexpr Duration kNextTurn = milliseconds(10);
constexpr Duration kTurnAfterRefusal = seconds(1);

ContainerRun* find_run(PodWorker& worker, std::string_view container) {
  return worker.find_run(container);
}

/// A container that has started delays the others until its hook has ended.
bool waits_for_hook(const PodWorker& worker) {
  const auto hooked = [](const ContainerRun& run) {
    return run.state == ContainerRun::State::kStarting && api::hook_of(*run.spec, "postStart").has_value();
  };
  return std::ranges::any_of(worker.init_containers, hooked) || std::ranges::any_of(worker.containers, hooked);
}

/// Name of the pod's list that contains the container.
std::string_view list_name(const PodWorker& worker, const std::string& container) {
  const auto is_it = [&](const ContainerRun& run) { return run.spec->name == container; };
  if (std::ranges::any_of(worker.init_containers, is_it)) return "initContainers";
  return std::ranges::any_of(worker.ephemeral_containers, is_it) ? "ephemeralContainers" : "containers";
}

std::size_t bytes_of(const std::vector<std::string>& words) {
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size();
  return bytes;
}

bool by_key(const api::Pod* a, const api::Pod* b) {
  return std::tie(a->metadata.ns, a->metadata.name, a->metadata.uid) <
         std::tie(b->metadata.ns, b->metadata.name, b->metadata.uid);
}

}  // namespace

PodWorkers::PodWorkers(AgentContext& context, Rng rng, ResourceManagers& managers, PodVolumes& volumes,
                       std::function<admission::NodeSituation()> situation, std::span<const JournalEntry> history,
                       DecisionLog& decisions, telemetry::Registry* metrics)
    : context_(context),
      managers_(managers),
      volumes_(volumes),
      env_reader_(context),
      calls_(context),
      prober_(context, rng, calls_, *this),
      status_(context,
              [this](const std::string& uid, Now now) {
                PodWorker* worker = find(uid);
                if (worker != nullptr) finish(*worker, now);
              }),
      admission_(context, std::move(situation), *this, decisions, metrics) {
  for (const JournalEntry& entry : history) {
    if (entry.eviction) decided_before_.insert_or_assign(entry.eviction->uid, evicted(*entry.eviction));
  }
}

PodWorker* PodWorkers::find(const std::string& uid) {
  const auto it = workers_.find(uid);
  return it == workers_.end() ? nullptr : &it->second;
}

const PodWorker* PodWorkers::find(const std::string& uid) const {
  const auto it = workers_.find(uid);
  return it == workers_.end() ? nullptr : &it->second;
}

void PodWorkers::start(const client::ObjectCache<api::Pod>& pods, Now now) {
  SPILLWAY_CHECK(!started_);
  started_ = true;
  prober_.start(now);
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
  PodWorker* worker = find(uid);
  if (worker == nullptr || std::exchange(worker->object, PodObject::kRetired) == PodObject::kRetired) return;
  if (worker->phase == WorkerPhase::kTerminated) {
    forget(uid, now);
  } else if (worker->phase != WorkerPhase::kTerminating) {
    terminate(*worker, now);
  }
}

void PodWorkers::set_mirror(const std::string& uid, const client::ObjectCache<api::Pod>::Ptr& mirror, Now now) {
  PodWorker* worker = find(uid);
  if (worker == nullptr) return;
  if (!mirror) return status_.lose(uid);
  status_.observe(uid, *mirror);
  resume_static(*worker, mirror->status, now);
  if (worker->phase != WorkerPhase::kWaiting) status_.want(uid, worker->status, now);
}

void PodWorkers::seen(const std::shared_ptr<const api::Pod>& pod, Now now) {
  status_.observe(pod->metadata.uid, *pod);
  PodWorker* worker = find(pod->metadata.uid);
  if (worker == nullptr) {
    add(pod, now);
    return;
  }
  worker->pod = pod;
  switch (worker->phase) {
    case WorkerPhase::kWaiting:
      if (pod->metadata.deletion_timestamp || api::is_terminal(*pod)) terminate(*worker, now);
      break;
    case WorkerPhase::kSyncing:
      if (pod->metadata.deletion_timestamp || api::is_terminal(*pod)) {
        terminate(*worker, now);
      } else {
        arm_deadline(*worker);
        volumes_.update(pod, now);
        adopt_definitions(*worker) ? sync(*worker, now) : report(*worker, now);
      }
      break;
    case WorkerPhase::kTerminating:
      shorten_grace(*worker);
      report(*worker, now);
      break;
    case WorkerPhase::kTerminated:
      status_.want(worker->uid(), worker->status, now);
      finish(*worker, now);
      break;
  }
}

void PodWorkers::add(const std::shared_ptr<const api::Pod>& pod, Now now) {
  context_.log.info(
      "syncloop add",
      {{"source", api::is_static(*pod) ? "file" : "api"}, {"pod", pod->key().text()}, {"pod_uid", pod->metadata.uid}});
  PodWorker& worker = workers_[pod->metadata.uid];
  worker.pod = pod;
  const Duration longest = context_.options.restart_delay_max;
  worker.restart_bounds = {.first = std::min<Duration>(containers::BackOffBounds().first, longest), .longest = longest};
  worker.needs_sandbox =
      context_.machine.runs_images || has_pod_network(*pod, context_.machine) || !pod->spec.runtime_class_name.empty();
  worker.status = pod->status;
  restore_containers(worker, now.mono);
  const bool alive = claim(worker, now);
  if (api::is_terminal(*pod)) {
    if (alive) return terminate(worker, now);
    worker.phase = WorkerPhase::kTerminated;
    status_.want(worker.uid(), worker.status, now);
    if (decided_before_.contains(pod->metadata.uid)) remove_content(worker);
    finish(worker, now);
    return;
  }
  if (const auto decided = decided_before_.find(pod->metadata.uid); decided != decided_before_.end()) {
    worker.forced_end = decided->second;
    worker.content = PodContent::kCreated;
    terminate(worker, now);
    return;
  }
  const bool asked_to_end = pod->metadata.deletion_timestamp.has_value();
  if (admission::arrival_of(*pod, {.termination_requested = asked_to_end}) == admission::Arrival::kNotStarted) {
    terminate(worker, now);
    return;
  }
  admission_.add(pod->metadata.uid);
}

std::shared_ptr<const api::Pod> PodWorkers::find_waiting(const std::string& uid) const {
  const auto it = workers_.find(uid);
  return it == workers_.end() || it->second.phase != WorkerPhase::kWaiting ? nullptr : it->second.pod;
}

void PodWorkers::begin(const std::string& uid, Now now) {
  PodWorker& worker = *find(uid);
  worker.phase = WorkerPhase::kSyncing;
  adopt_definitions(worker);  // definitions may have changed while it waited
  if (!worker.start_time) worker.start_time = now.wall;
  worker.active_since = now.mono - std::max<Duration>(now.wall - *worker.start_time, Duration{});
  const std::optional<Instant> deadline = active_deadline(*worker.pod, worker.active_since);
  if (deadline && *deadline <= now.mono) return exceed_deadline(worker, now);
  arm_deadline(worker);
  worker.content = PodContent::kCreated;
  CreatePod create = create_pod_command(*worker.pod);
  create.pids_max = context_.options.pod_pids_max;
  create.isolation = isolation_of(*worker.pod, context_.machine, context_.options.cluster_domain);
  const bool has_network = has_pod_network(*worker.pod, context_.machine);
  worker.own_network = create.isolation.network && !has_network;
  if (worker.own_network) {
    record(worker, {}, client::EventType::kNormal, "LoopbackOnly",
           "The pod has a network namespace of its own with nothing but the loopback device, as it asked for", now);
  }
  const std::optional<Bytes> memory_limit = create.memory_limit;
  if (context_.machine.runs_images || has_network) create.definition = worker.pod;
  context_.host_commands.emplace_back(std::move(create));
  if (context_.machine.runs_images) {
    volumes_.add(worker.pod, memory_limit, now);
  } else if (context_.machine.confines_pods) {
    volumes_.add(worker.pod, memory_limit, now);
    for (const LeftOut& each : left_out_of(*worker.pod, context_.options.shared_network_because)) {
      record(worker, {},
             each.weight == LeftOut::Weight::kWarning ? client::EventType::kWarning : client::EventType::kNormal,
             each.reason, each.message, now);
    }
    if (has_own_dns(*worker.pod, context_.options.dns)) {
      const auto dns = pod_dns(*worker.pod, context_.options.dns);  // errors in it are reported by each container
      for (const DnsWarning& each : dns ? dns->warnings : std::vector<DnsWarning>()) {
        if (!each.about_node) record(worker, {}, client::EventType::kWarning, each.reason, each.message, now);
      }
    }
  }
  prober_.add(*worker.pod, now);
  sync(worker, now);
}

void PodWorkers::refuse(const std::string& uid, const admission::Refusal& refusal, Now now) {
  PodWorker& worker = *find(uid);
  if (worker.phase == WorkerPhase::kWaiting && worker.content == PodContent::kCreated) {  // the pod existed before
    record(worker, {}, client::EventType::kWarning, refusal.reason, refusal.message, now);
    const api::PodStatus status = admission::refused_status(*worker.pod, refusal);
    return end(worker, {.ending = {status.phase, status.reason, status.message, {}}, .grace_period_seconds = {}}, now);
  }
  managers_.release(uid);
  worker.content = PodContent::kNever;
  worker.phase = WorkerPhase::kTerminated;
  worker.status = admission::refused_status(*worker.pod, refusal);
  record(worker, {}, client::EventType::kWarning, refusal.reason, refusal.message, now);
  status_.want(worker.uid(), worker.status, now);
}

void PodWorkers::reject_admitted(const std::string& uid, const admission::Refusal& refusal, Now now) {
  PodWorker* worker = find(uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kSyncing) return;
  cancel_timers(*worker);
  prober_.remove(uid);
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
  apply_probes(worker);
  const ContainerPlan plan = plan_containers(worker, probes_seen(worker), now.mono);
  for (const PlannedStop& each : plan.stop) stop_run(worker, each, now);
  if (worker.sandbox == PodSandbox::kLost && !plan.finished) leave_sandbox(worker, now);
  for (const ContainerRun* run : plan.backs_off) {
    record(worker, run->spec->name, client::EventType::kWarning, "BackOff",
           containers::back_off_event(run->spec->name, description_of(*worker.pod)), now);
  }
  if (volumes_.is_ready(worker.uid()) && (plan.start.empty() || has_sandbox(worker, now))) {
    start_containers(worker, plan.start, now);
  }
  if (plan.finished) {
    terminate(worker, now);
    return;
  }
  if (plan.look_again) arm_retry(worker, *plan.look_again);
  report(worker, now);
}

void PodWorkers::on_volumes_ready(const std::string& uid, Now now) {
  PodWorker* worker = find(uid);
  if (worker != nullptr && worker->phase == WorkerPhase::kSyncing) sync(*worker, now);
}

void PodWorkers::start_containers(PodWorker& worker, const std::vector<ContainerRun*>& runs, Now now) {
  std::size_t bytes = 0;
  for (ContainerRun* run : runs) {
    if (waits_for_hook(worker)) return;
    if (bytes > kTurnBytesMax) return arm_retry(worker, now.mono + kNextTurn);
    start_container(worker, *run, now);
    if (run->too_large) return arm_retry(worker, now.mono + kTurnAfterRefusal);
    bytes += run->exec_bytes;
  }
}

/// Reads the objects that the variables refer to, if any, and continues with launch().
void PodWorkers::start_container(PodWorker& worker, ContainerRun& run, Now now) {
  run.permitted = false;
  std::set<DataReference> references = env_references(*run.spec);
  if (context_.machine.runs_images) add_pull_secrets(*worker.pod, references);
  const std::set<EnvFile> files = env_files(*worker.pod, *run.spec);
  if (references.empty() && files.empty()) return create_container(worker, run, {}, now);
  run.reading = true;
  env_reader_.read(worker.uid(), worker.pod->metadata.ns, references, files,
                   [this, uid = worker.uid(), name = run.spec->name](const EnvReader::Read& read, Now then) {
                     PodWorker* again = find(uid);
                     ContainerRun* waiting = again == nullptr ? nullptr : find_run(*again, name);
                     if (waiting == nullptr) return;
                     waiting->reading = false;
                     if (again->phase != WorkerPhase::kSyncing) return;
                     if (again->sandbox == PodSandbox::kLost) return sync(*again, then);
                     if (read.error) {
                       refuse_start(*again, *waiting, {"CreateContainerConfigError", read.error->text()}, Retry::kYes,
                                    then);
                     } else {
                       create_container(*again, *waiting, read, then);
                     }
                     report(*again, then);
                   });
}

/// A missing reference may appear later: it is checked on every sync while the pod exists.
void PodWorkers::refuse_start(PodWorker& worker, ContainerRun& run, StartRefusal refusal, Retry retry, Now now) {
  record(worker, run.spec->name, client::EventType::kWarning, "Failed", "Error: " + refusal.message, now);
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = std::move(refusal.reason);
  run.waiting_message = std::move(refusal.message);
  run.retry_at = retry == Retry::kYes ? now.mono + kSyncRetry : Instant::max();
  if (retry == Retry::kYes) arm_retry(worker, *run.retry_at);
}

/// Bytes of the containers that start or run, without this one.
std::size_t PodWorkers::exec_bytes_beside(const PodWorker& worker, const ContainerRun& run) {
  std::size_t bytes = 0;
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& each : *list) {
      const bool lives = each.state == ContainerRun::State::kStarting || each.state == ContainerRun::State::kRunning;
      if (lives && &each != &run) bytes += each.exec_bytes;
    }
  }
  return bytes;
}

void PodWorkers::refuse_as_too_large(PodWorker& worker, ContainerRun& run, std::string why, Now now) {
  run.too_large = true;
  refuse_start(worker, run, {"CreateContainerError", std::move(why)}, Retry::kYes, now);
}

void PodWorkers::create_container(PodWorker& worker, ContainerRun& run, const EnvReader::Read& read, Now now) {
  run.too_large = false;
  run.exec_bytes = 0;
  const std::size_t beside = exec_bytes_beside(worker, run);
  if (beside > kPodBytesMax)
    return refuse_start(
        worker, run,
        {"CreateContainerError",
         fmt::format("arguments and environments of the pod's other containers take more than {} bytes", kPodBytesMax)},
        Retry::kYes, now);
  const Result<Environment> environment =
      environment_of(*worker.pod, *run.spec,
                     {.addresses = addresses_of(worker),
                      .sources = read.sources,
                      .files = read.files,
                      .services = services_ ? std::optional(services_()) : std::nullopt,
                      .allocatable = volumes_.allocatable()});
  if (!environment) {
    const ErrorCode code = environment.error().code;
    if (code == ErrorCode::kRequestEntityTooLarge)
      return refuse_as_too_large(worker, run, environment.error().text(), now);
    const Retry retry =
        code == ErrorCode::kNotFound || code == ErrorCode::kServiceUnavailable ? Retry::kYes : Retry::kNo;
    return refuse_start(worker, run, {"CreateContainerConfigError", environment.error().text()}, retry, now);
  }
  if (worker.is_ephemeral(run)) {  // the container did not exist when the pod was admitted
    const admission::Answer answer =
        admission::admit_app_armor_of(*worker.pod, *run.spec, context_.machine.app_armor_error);
    if (answer.refusal)
      return refuse_start(worker, run, {"CreateContainerConfigError", answer.refusal->message}, Retry::kNo, now);
  }
  const bool runs_images = context_.machine.runs_images;
  Result<std::vector<std::string>> command =
      runs_images ? words_of(*run.spec, *environment) : command_line_of(*run.spec, *environment);
  if (!command && command.error().code == ErrorCode::kRequestEntityTooLarge)
    return refuse_as_too_large(worker, run, command.error().text(), now);
  if (!command) return refuse_start(worker, run, {"CreateContainerError", command.error().text()}, Retry::kNo, now);
  Result<std::string> working_dir = runs_images ? Result<std::string>(run.spec->working_dir)
                                                : expand(run.spec->working_dir, *environment, PATH_MAX - 1);
  if (!working_dir)
    return refuse_start(worker, run, {"CreateContainerError", "workingDir: File name too long"}, Retry::kYes, now);
  ContainerSecurity security;
  if (context_.machine.confines_pods && !runs_images) {
    auto wanted =
        security_of(*worker.pod, *run.spec,
                    context_.options.seccomp_default ? SeccompDefault::kRuntimeDefault : SeccompDefault::kUnconfined);
    if (!wanted) return refuse_start(worker, run, wanted.error(), Retry::kNo, now);
    security = *std::move(wanted);
  } else if (!runs_images) {
    if (auto refused = refusal_without_confinement(*worker.pod))
      return refuse_start(worker, run, *std::move(refused), Retry::kNo, now);
  }
  StartContainer start;
  if (runs_images) {
    start.definition = worker.pod;
    start.pull_secrets = pull_secrets_of(*worker.pod, read.sources);
  }
  if (context_.machine.confines_pods || runs_images) {
    const Outcome mounts = add_mounts(worker, *run.spec, *environment, start);
    const Retry retry = runs_images ? Retry::kYes : Retry::kNo;  // the runtime may not have reported its features yet
    if (!mounts) return refuse_start(worker, run, {"CreateContainerConfigError", mounts.error().text()}, retry, now);
  }
  if (run.ended) {
    run.ended_before = std::exchange(run.ended, std::nullopt);
    ++run.restart_count;
  }
  run.image = run.spec->image;
  run.state = ContainerRun::State::kStarting;
  run.waiting_reason = "ContainerCreating";
  run.waiting_message.clear();
  run.retry_at.reset();
  run.running_since.reset();
  run.again = false;
  const ContainerLimits limits = limits_of(worker.pod->spec, *run.spec);
  start.message_from_logs = run.spec->termination_message_policy == "FallbackToLogsOnError";
  start.uid = worker.uid();
  start.standard_input = run.spec->standard_input;
  start.input_ends_once = run.spec->standard_input_once;
  start.terminal = run.spec->tty;
  if (worker.is_ephemeral(run)) start.target = run.spec->target_container_name;
  start.image = run.image;
  start.name = run.spec->name;
  start.attempt = run.restart_count;
  run.exec_bytes = environment->written_bytes() + bytes_of(*command);
  if (!runs_images) start.argv = *std::move(command);  // else container_config() makes it, with the devices' variables
  start.env = environment->variables();
  start.working_dir = *std::move(working_dir);
  start.memory_limit = limits.memory_limit;
  start.cpu_limit_milli = limits.cpu_limit_milli;
  start.cpu_request_milli = limits.cpu_request_milli;
  start.oom_score_adj = oom_score_adj(*worker.pod, *run.spec, context_.machine.memory);
  start.security = std::move(security);
  managers_.devices().prepare(
      worker.uid(), run.spec->name,
      [this, start = std::move(start)](const Result<DeviceGrant>& devices, Now then) { launch(start, devices, then); },
      now);
}

/// The container's own variables win over those of its devices.
void PodWorkers::launch(StartContainer command, const Result<DeviceGrant>& devices, Now now) {
  PodWorker* worker = find(command.uid);
  ContainerRun* run = worker == nullptr ? nullptr : find_run(*worker, command.name);
  if (run == nullptr || worker->phase != WorkerPhase::kSyncing || run->state != ContainerRun::State::kStarting ||
      run->restart_count != command.attempt) {
    return;
  }
  if (!devices) {
    return on_container_start_failed(
        {command.uid, command.name, command.attempt, "CreateContainerConfigError", devices.error().message}, now);
  }
  command.devices = *devices;
  command.cpuset = managers_.cpuset_of(command.uid, command.name);
  std::set<std::string, std::less<>> taken;
  if (!command.devices.env.empty())
    for (const auto& [name, value] : command.env) taken.insert(name);
  for (auto& [name, value] : std::exchange(command.devices.env, {}))
    if (taken.insert(name).second) command.env.emplace_back(name, std::move(value));
  context_.host_commands.emplace_back(std::move(command));
}

void PodWorkers::arm_retry(PodWorker& worker, Instant due) {
  if (worker.retry_timer && worker.retry_due && *worker.retry_due <= due) return;
  if (worker.retry_timer) context_.api.cancel(*worker.retry_timer);
  worker.retry_due = due;
  worker.retry_timer = context_.api.at(due, [this, uid = worker.uid()](Now now) {
    PodWorker* again = find(uid);
    if (again == nullptr) return;
    again->retry_timer.reset();
    if (again->phase == WorkerPhase::kSyncing) sync(*again, now);
  });
}

void PodWorkers::arm_deadline(PodWorker& worker) {
  const std::optional<Instant> due = active_deadline(*worker.pod, worker.active_since);
  if (worker.deadline == due) return;
  if (worker.deadline_timer) context_.api.cancel(*std::exchange(worker.deadline_timer, std::nullopt));
  worker.deadline = due;
  if (!due) return;
  worker.deadline_timer = context_.api.at(*due, [this, uid = worker.uid()](Now now) {
    PodWorker* again = find(uid);
    if (again == nullptr) return;
    again->deadline_timer.reset();
    if (again->phase == WorkerPhase::kSyncing) exceed_deadline(*again, now);
  });
}

void PodWorkers::on_container_started(const ContainerStarted& event, Now now) {
  PodWorker* worker = find(event.uid);
  ContainerRun* run = worker == nullptr ? nullptr : find_run(*worker, event.name);
  if (run == nullptr || run->restart_count != event.attempt || run->state != ContainerRun::State::kStarting) return;
  run->started_at = event.at;
  run->container_id = event.container_id;
  run->image_id = event.image_id;
  run->running_since = now.mono;
  record(*worker, event.name, client::EventType::kNormal, "Started", "Started container " + event.name, now);
  const auto hook = api::hook_of(*run->spec, "postStart");
  if (hook && worker->phase == WorkerPhase::kSyncing) return run_post_start(*worker, *run, *hook, now);
  set_running(*worker, *run, now);
}

void PodWorkers::on_container_start_failed(const ContainerStartFailed& event, Now now) {
  PodWorker* worker = find(event.uid);
  ContainerRun* run = worker == nullptr ? nullptr : find_run(*worker, event.name);
  if (run == nullptr || run->restart_count != event.attempt || run->state != ContainerRun::State::kStarting) return;
  if (worker->sandbox == PodSandbox::kLost && worker->phase == WorkerPhase::kSyncing) {
    forget_start(*run);  // its failure follows from the loss, which is reported
    return sync(*worker, now);
  }
  const std::string_view why = is_image_problem(event.reason) ? event.reason : event.message;
  record(*worker, event.name, client::EventType::kWarning, "Failed", fmt::format("Error: {}", why), now);
  record_start_failure(*worker, *run, event.reason, event.message, now);
  if (is_image_problem(event.reason)) run->retry_at = now.mono + kSyncRetry;  // images have a back-off of their own
  on_gone_in_stop(*worker, event.name, now);
  worker->phase == WorkerPhase::kSyncing ? sync(*worker, now) : report(*worker, now);
}

void PodWorkers::on_container_exited(const ContainerExited& event, Now now) {
  PodWorker* worker = find(event.uid);
  if (const auto found = found_.find(event.uid); found != found_.end()) note_exit(found->second, event);
  ContainerRun* run = worker == nullptr ? nullptr : find_run(*worker, event.name);
  if (run == nullptr || run->restart_count != event.attempt) return;
  const bool over = run->state == ContainerRun::State::kWaiting || run->state == ContainerRun::State::kExited;
  if (over && worker->phase == WorkerPhase::kSyncing) return;
  api::ContainerState::Terminated ended = terminated_by(event);
  if (ended.container_id.empty()) ended.container_id = container_id(event.uid, event.name, event.attempt);
  record_exit(*run, std::move(ended), now.mono);
  if (worker->phase == WorkerPhase::kSyncing) return sync(*worker, now);
  run->state = ContainerRun::State::kExited;
  on_gone_in_stop(*worker, event.name, now);
  report(*worker, now);
}

void PodWorkers::report(PodWorker& worker, Now now) {
  if (worker.content == PodContent::kNever) return;
  apply_probes(worker);
  worker.status = compute_status(worker, addresses_of(worker), now.wall);
  if (worker.object != PodObject::kGone) status_.want(worker.uid(), worker.status, now);
}

void PodWorkers::record(const PodWorker& worker, const std::string& container, client::EventType type,
                        std::string_view reason, std::string_view message, Now now) {
  api::ObjectReference about = client::reference_to(*worker.pod);
  if (!container.empty()) {
    about.field_path = fmt::format("spec.{}{{{}}}", list_name(worker, container), container);
  }
  about.resource_version.clear();  // repeats of one event must be recognised across versions
  context_.events.record(about, type, reason, message, now);
}

bool PodWorkers::is_finished(const std::string& uid) const {
  const auto it = workers_.find(uid);
  return it == workers_.end() || it->second.phase == WorkerPhase::kTerminated;
}

std::vector<const api::Pod*> PodWorkers::active() const {
  std::vector<const api::Pod*> pods;
  for (const auto& [uid, worker] : workers_) {
    if (worker.phase == WorkerPhase::kWaiting) continue;
    const admission::WorkerState state{.termination_requested = worker.phase != WorkerPhase::kSyncing,
                                       .terminated = worker.phase == WorkerPhase::kTerminated};
    if (admission::is_active(*worker.pod, worker.status.phase, state)) pods.push_back(worker.pod.get());
  }
  std::ranges::sort(pods, by_key);
  return pods;
}

std::vector<api::Pod> PodWorkers::all() const {
  std::vector<api::Pod> pods;
  for (const auto& [uid, worker] : workers_) {
    pods.push_back(*worker.pod);
    pods.back().status = worker.status;
  }
  std::ranges::sort(pods, [](const api::Pod& a, const api::Pod& b) { return by_key(&a, &b); });
  return pods;
}

}  // namespace spillway::agent
