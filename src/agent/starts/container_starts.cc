#include "agent/starts/container_starts.h"

#include "agent/starts/pull_secrets.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

// Arguments and environments of a pod's containers. After so many bytes the next container of the pod is left to a
// later turn, so that a pod of a thousand containers holds up nothing else for longer than one takes; after one that
// was refused as too large, much later: it took longest, and is tried again.
constexpr std::size_t kTurnBytesMax = 2 * kExecBytesMax;
constexpr Duration kNextTurn = milliseconds(10);
constexpr Duration kTurnAfterRefusal = seconds(1);

/// A container that has started delays the others until its hook has ended.
bool waits_for_hook(const PodWorker& worker) {
  const auto hooked = [](const ContainerRun& run) {
    return run.state == ContainerRun::State::kStarting && api::hook_of(*run.spec, "postStart").has_value();
  };
  return std::ranges::any_of(worker.init_containers, hooked) || std::ranges::any_of(worker.containers, hooked);
}

/// The next run of the container begins.
void begin_run(ContainerRun& run) {
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
}

}  // namespace

ContainerStarts::ContainerStarts(AgentContext& context, ResourceManagers& managers,
                                 const api::ResourceList& allocatable, PodTable& pods, PodEvents& events,
                                 PodTimers& timers, PodResizes& resizes, PodSync& sync, StartFailed failed)
    : context_(context),
      managers_(managers),
      allocatable_(allocatable),
      pods_(pods),
      events_(events),
      timers_(timers),
      resizes_(resizes),
      sync_(sync),
      failed_(std::move(failed)),
      env_reader_(context) {}

void ContainerStarts::start(PodWorker& worker, const std::vector<ContainerRun*>& runs, Now now) {
  std::size_t bytes = 0;
  for (ContainerRun* run : runs) {
    if (waits_for_hook(worker)) return;
    if (bytes > kTurnBytesMax) return timers_.arm_retry(worker, now.mono + kNextTurn);
    start_one(worker, *run, now);
    if (run->too_large) return timers_.arm_retry(worker, now.mono + kTurnAfterRefusal);
    bytes += run->exec_bytes;
  }
}

void ContainerStarts::start_one(PodWorker& worker, ContainerRun& run, Now now) {
  run.permitted = false;
  std::set<DataReference> references = env_references(*run.spec);
  if (context_.machine.runs_images) add_pull_secrets(*worker.pod, references);
  const std::set<EnvFile> files = env_files(*worker.pod, *run.spec);
  if (references.empty() && files.empty()) return create(worker, run, {}, now);
  run.reading = true;
  env_reader_.read(worker.uid(), worker.pod->metadata.ns, references, files,
                   [this, uid = worker.uid(), name = run.spec->name](const EnvReader::Read& read, Now then) {
                     on_read(uid, name, read, then);
                   });
}

void ContainerStarts::on_read(const std::string& uid, const std::string& container, const EnvReader::Read& read,
                              Now now) {
  PodWorker* worker = pods_.find(uid);
  ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(container);
  if (run == nullptr) return;
  run->reading = false;
  if (worker->phase != WorkerPhase::kSyncing) return;
  if (worker->sandbox == PodSandbox::kLost) return sync_.sync(*worker, now);
  if (read.error) {
    refuse(*worker, *run,
           {.why = {"CreateContainerConfigError", read.error->text()}, .retry = RefusedStart::Retry::kYes}, now);
  } else {
    create(*worker, *run, read, now);
  }
  sync_.report(*worker, now);
}

void ContainerStarts::create(PodWorker& worker, ContainerRun& run, const EnvReader::Read& read, Now now) {
  run.too_large = false;
  run.exec_bytes = 0;
  StartCommand command({.options = context_.options,
                        .machine = context_.machine,
                        .allocatable = allocatable_,
                        .handlers = handlers_,
                        .services = services_},
                       worker, run, read);
  if (auto refused = command.make()) return refuse(worker, run, *std::move(refused), now);
  begin_run(run);
  resizes_.on_starting(worker.uid(), *run.spec);
  run.exec_bytes = command.exec_bytes();
  StartContainer start = command.take();
  start.attempt = run.restart_count;
  managers_.devices().prepare(
      worker.uid(), run.spec->name,
      [this, start = std::move(start)](const Result<DeviceGrant>& devices, Now then) { launch(start, devices, then); },
      now);
}

/// The container's own variables win over those of its devices.
void ContainerStarts::launch(StartContainer command, const Result<DeviceGrant>& devices, Now now) {
  PodWorker* worker = pods_.find_syncing(command.uid);
  ContainerRun* run = worker == nullptr ? nullptr : worker->find_run(command.name);
  if (run == nullptr || run->state != ContainerRun::State::kStarting || run->restart_count != command.attempt) return;
  if (!devices) {
    return failed_({command.uid, command.name, command.attempt, "CreateContainerConfigError", devices.error().message},
                   now);
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

/// A missing reference may appear later: it is checked on every sync while the pod exists.
void ContainerStarts::refuse(PodWorker& worker, ContainerRun& run, RefusedStart refused, Now now) {
  if (refused.too_large) run.too_large = true;
  events_.record(worker, run.spec->name, client::EventType::kWarning, "Failed", "Error: " + refused.why.message, now);
  run.state = ContainerRun::State::kWaiting;
  run.waiting_reason = std::move(refused.why.reason);
  run.waiting_message = std::move(refused.why.message);
  const bool retries = refused.retry == RefusedStart::Retry::kYes;
  run.retry_at = retries ? now.mono + kRetry : Instant::max();
  if (retries) timers_.arm_retry(worker, *run.retry_at);
}

}  // namespace spillway::agent
