#include "host/process/process_runtime.h"

#include "agent/serving/log_choice.h"
#include "base/file.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/devices/device_access.h"
#include "host/disk/dead_containers.h"
#include "host/kernel/kernel_file.h"
#include "host/pods/pod_limits.h"
#include "host/pods/termination_message.h"
#include "host/volumes/managed_file.h"
#include "host/volumes/provisioned_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPodRemovalsMax = 10'000;
constexpr int kCgroupRemovalTriesMax = 100;
constexpr std::string_view kProcessHandler = "process";  // in RuntimeClasses
constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string pod_folder(const agent::CreatePod& pod) {
  return fmt::format("{}_{}_{}", pod.pod.ns, pod.pod.name, pod.uid);
}

bool has_variable(const agent::StartContainer& command, std::string_view name) {
  return std::ranges::any_of(command.env, [&](const auto& entry) { return entry.first == name; });
}

}  // namespace

ProcessRuntime::ProcessRuntime(runtime::Loop& loop, const NodeSlice& slice, agent::Host::Receiver& receiver,
                               telemetry::Log log, ProcessRuntimeOptions options)
    : loop_(loop),
      slice_(slice),
      receiver_(receiver),
      log_(std::move(log)),
      options_(std::move(options)),
      observer_(loop, slice, log_, options_.state_dir, options_.pressure),
      orphans_(slice),
      checkpoints_(loop, options_.state_dir, log_),
      files_(loop, kPodRemovalsMax),
      relief_(loop),
      volumes_(loop),
      commands_(loop, [this](agent::RanInContainer answer) { emit(std::move(answer)); }),
      ports_(loop) {}

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::create(runtime::Loop& loop, const NodeSlice& slice,
                                                               agent::Host::Receiver& receiver, telemetry::Log log,
                                                               ProcessRuntimeOptions options) {
  std::error_code error;
  const fs::path state = fs::absolute(options.state_dir, error);
  if (error || options.state_dir.empty()) return invalid("state directory", "\"{}\" is no path", options.state_dir);
  options.state_dir = state.string();
  options.hidden.push_back(options.state_dir);
  const fs::path pods = state / "pods";
  SPILLWAY_TRY_VOID(make_directories(pods));
  std::unique_ptr<ProcessRuntime> runtime(
      new ProcessRuntime(loop, slice, receiver, std::move(log), std::move(options)));  // NOLINT: private constructor
  runtime->observer_.report_own_cgroup();
  runtime->program_folder_ = fs::path(own_program()).parent_path().string();
  if (runtime->options_.isolation == ProcessRuntimeOptions::Isolation::kNamespaces) {
    SPILLWAY_TRY(isolator, PodIsolator::create(pods.string(), runtime->options_.hidden, slice.kubepods().version()));
    runtime->isolator_ = std::move(isolator);
  }
  if (runtime->options_.network) {
    SPILLWAY_TRY(networks, PodNetworks::create(loop, runtime->log_, *runtime->options_.network));
    runtime->networks_ = std::move(networks);
  }
  SPILLWAY_TRY_VOID(runtime->options_.keeps_pods ? runtime->look_around() : runtime->remove_stale_pods());
  if (runtime->networks_ && !runtime->options_.keeps_pods) runtime->networks_->remove_leftovers();
  runtime->keep_house();
  return runtime;
}

ProcessRuntime::~ProcessRuntime() = default;

void ProcessRuntime::execute(agent::HostCommand command) {
  std::visit([this](auto&& each) { on_command(std::forward<decltype(each)>(each)); }, std::move(command));
}

void ProcessRuntime::emit(agent::HostEvent event) {
  if (before_event_) before_event_();
  loop_.post([this, alive = std::weak_ptr(alive_), event = std::move(event)]() mutable {
    if (!alive.expired()) receiver_.on_host_event(std::move(event));
  });
}

Outcome ProcessRuntime::make_pod(PodEntry& pod) {
  const agent::CreatePod& command = pod.command;
  if (!is_plain_name(command.uid) || !is_plain_name(command.pod.ns) || !is_plain_name(command.pod.name))
    return invalid("pod", "uid \"{}\", namespace \"{}\" or name \"{}\" cannot name a directory", command.uid,
                   command.pod.ns, command.pod.name);
  pod.directory = fmt::format("{}/pods/{}", options_.state_dir, pod_folder(command));
  SPILLWAY_TRY_VOID(make_directories(fs::path(pod.directory) / kWorkFolder));
  SPILLWAY_TRY(isolated, isolator_.isolate(command, fmt::format("{}/{}", pod.directory, kWorkFolder)));
  pod.isolated = std::move(isolated);
  if (pod.isolated.first_id) {
    pod.volumes =
        std::make_shared<VolumeSet>(VolumeSetOptions{.directory = fmt::format("{}/{}", pod.directory, kVolumeFolder),
                                                     .first_id = *pod.isolated.first_id,
                                                     .hidden = options_.hidden,
                                                     .provisioned = provisioned_folder(options_.state_dir),
                                                     .kept = options_.keeps_pods,
                                                     .mounts = std::exchange(pod.mounts, {})});
  }
  SPILLWAY_TRY(cgroup, slice_.parent_of(command.qos).create_child("pod" + command.uid));
  pod.cgroup = std::move(cgroup);
  SPILLWAY_TRY_VOID(pod.cgroup.delegate_controllers());
  SPILLWAY_TRY_VOID(apply_limits(pod.cgroup, pod_limits(command, {})));
  if (!supervisor_program_) return {};
  return write_record(fmt::format("{}/{}", pod.directory, kPodRecord),
                      pod_record({command, pod.isolated.first_id, pod.created, pod.capabilities}));
}

/// Makes a pod again that an earlier process made, and of which no namespace is left.
Outcome ProcessRuntime::ensure_made(PodEntry& pod) {
  if (!std::exchange(pod.made, true)) {
    const Outcome made = make_pod(pod);
    if (!made) pod.broken = made.error();
  }
  return pod.broken ? Outcome(*pod.broken) : Outcome();
}

void ProcessRuntime::release_ids(const PodEntry& pod) {
  if (pod.isolated.first_id) isolator_.release(*pod.isolated.first_id);
}

void ProcessRuntime::on_command(agent::CreatePod command) {
  const auto known = pods_.find(command.uid);
  if (known != pods_.end() && !known->second.broken) return;
  if (known == pods_.end() && pods_.size() >= options_.pods_max) return;  // its containers will report it
  PodEntry pod;
  pod.command = std::move(command);
  pod.created = loop_.now().wall;
  if (networks_ && pod.command.definition) pod.capabilities = capabilities_of(*pod.command.definition);
  const Outcome made = make_pod(pod);
  if (!made) {
    pod.broken = made.error();
    log_.error("pod cgroup not made", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  }
  const std::string uid = pod.command.uid;
  if (known != pods_.end()) release_ids(known->second);
  pods_[uid] = std::move(pod);
  update_class_shares();
}

void ProcessRuntime::refuse(const agent::StartContainer& command, std::string_view reason, std::string message) {
  emit(
      agent::ContainerStartFailed{command.uid, command.name, command.attempt, std::string(reason), std::move(message)});
}

void ProcessRuntime::on_command(agent::StartContainer command) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end())
    return refuse(command, "CreateContainerError",
                  pods_.size() >= options_.pods_max ? fmt::format("this node runs {} pods already", pods_.size())
                                                    : fmt::format("pod {} is unknown", command.uid));
  PodEntry& pod = found->second;
  if (const Outcome made = ensure_made(pod); !made) return refuse(command, "CreateContainerError", made.error().text());
  if (pod.stopping || shutting_down_) return refuse(command, "RunContainerError", "the pod is being stopped");
  if (!is_plain_name(command.name) || command.name.starts_with('_'))
    return refuse(command, "CreateContainerError", fmt::format("\"{}\" cannot name a container", command.name));
  if (pod.containers.contains(command.name) || pod.awaited.contains(command.name))
    return refuse(command, "CreateContainerError", fmt::format("container \"{}\" is still running", command.name));

  const agent::PodIsolation& isolation = pod.command.isolation;
  const DeviceView sees = isolation.confined ? DeviceView::kOwn : DeviceView::kHost;
  if (const Outcome devices = check_device_access(command.devices, sees); !devices)
    return refuse(command, "CreateContainerError", devices.error().text());

  const std::string work =
      isolation.confined ? std::string(kPodHome) : fmt::format("{}/{}", pod.directory, kWorkFolder);
  const std::string_view programs = isolation.confined ? kProgramFolder : std::string_view(program_folder_);
  const std::pair<std::string, std::string> defaults[] = {
      {"PATH", programs.empty() ? std::string(kDefaultPath) : fmt::format("{}:{}", kDefaultPath, programs)},
      {"HOSTNAME", isolation.hostname.empty() ? pod.command.pod.name : isolation.hostname},
      {"HOME", work}};
  for (const auto& [name, value] : defaults)
    if (!has_variable(command, name)) command.env.emplace_back(name, value);
  if (command.terminal && !has_variable(command, "TERM")) command.env.emplace_back("TERM", "xterm");
  if (command.working_dir.empty()) command.working_dir = work;
  // The pool may have changed since the agent chose the CPUs.
  if (command.cpuset.shares && !shared_cpus_.empty()) command.cpuset.cpus = shared_cpus_;
  const std::string log_folder = fmt::format("{}/{}", pod.directory, command.name);
  const Outcome made = make_directories(log_folder);
  if (!made) return refuse(command, "CreateContainerError", made.error().text());

  const std::string log_path = fmt::format("{}/{}.log", log_folder, command.attempt);
  if (pod.volumes && !(command.volumes.empty() && command.files.empty()))
    return open_mounts(pod, std::move(command), log_path);
  launch(pod, std::move(command), log_path, {});
}

void ProcessRuntime::launch(PodEntry& pod, agent::StartContainer command, const std::string& log_path,
                            std::vector<OpenedMount> mounts) {
  const agent::PodIsolation& isolation = pod.command.isolation;
  UniqueFd pids;
  if (!command.target.empty()) {
    const auto target = pod.containers.find(command.target);
    auto found = target == pod.containers.end()
                     ? make_error(ErrorCode::kNotFound, "unable to find target container {}", command.target)
                     : target->second->pids();
    if (!found) return refuse(command, "CreateContainerConfigError", found.error().message);
    pids = *std::move(found);
  }
  std::optional<Supervision> supervision;
  if (supervisor_program_) supervision = Supervision{supervisor_program_.get(), &supervisors_, volumes_.mounts()};
  auto container = std::make_unique<ContainerProcess>(
      loop_, log_, static_cast<ContainerProcess::Owner&>(*this),
      ContainerProcess::Start{command, &pod.cgroup, pod.isolated.namespaces ? &*pod.isolated.namespaces : nullptr,
                              isolation.sysctls, log_path, options_.logs, open_files_max_, pod.isolated.first_id,
                              !isolation.host_pids, std::move(mounts), std::move(pids), supervision});
  const Outcome started = container->start();
  if (!started) return refuse(command, "CreateContainerError", started.error().text());
  pod.containers.emplace(command.name, std::move(container));
  change_target(pod);
}

/// The directory of the files that the node makes for a container.
std::string ProcessRuntime::file_folder(const PodEntry& pod, const std::string& container) {
  return fmt::format("{}/{}/{}", pod.directory, kFileFolder, container);
}

void ProcessRuntime::open_mounts(PodEntry& pod, agent::StartContainer command, const std::string& log_path) {
  pod.awaited[command.name] = command.attempt;
  VolumeThread::Mounts wanted{.container = command.name,
                              .volumes = command.volumes,
                              .files = command.files,
                              .folder = file_folder(pod, command.name),
                              .first_id = *pod.isolated.first_id};
  const bool queued =
      volumes_.open(pod.volumes, std::move(wanted),
                    [this, alive = std::weak_ptr(alive_), command, log_path](Result<std::vector<OpenedMount>> opened) {
                      if (!alive.expired()) on_mounts(command, log_path, std::move(opened));
                    });
  if (queued) return;
  pod.awaited.erase(command.name);
  refuse(command, "CreateContainerError", "too many volumes are being made");
}

void ProcessRuntime::on_mounts(agent::StartContainer command, const std::string& log_path,
                               Result<std::vector<OpenedMount>> opened) {
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return refuse(command, "RunContainerError", "the pod is gone");
  PodEntry& pod = found->second;
  pod.awaited.erase(command.name);
  if (!opened) {
    refuse(command, "CreateContainerConfigError", opened.error().text());
  } else if (pod.stopping || shutting_down_) {
    refuse(command, "RunContainerError", "the pod is being stopped");
  } else {
    launch(pod, std::move(command), log_path, *std::move(opened));
  }
  settle(found->first);
}

void ProcessRuntime::on_command(agent::SetUpVolumes command) {
  const auto fail_all = [&](const std::string& why) {
    agent::VolumesSetUp answer{command.uid, command.id, {}};
    for (const agent::VolumeSetup& each : command.volumes) answer.failures.push_back({each.name, why});
    emit(std::move(answer));
  };
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return fail_all(fmt::format("pod {} is unknown", command.uid));
  PodEntry& pod = found->second;
  if (const Outcome made = ensure_made(pod); !made) return fail_all(made.error().text());
  if (!pod.volumes) return fail_all("the pod is being stopped");
  for (const agent::VolumeSetup& each : command.volumes) {
    const auto* empty = std::get_if<agent::EmptyDirectory>(&each.content);
    if (empty != nullptr && !empty->in_memory) pod.disk_volumes.insert(each.name);
  }
  const bool queued = volumes_.set_up(pod.volumes, command, loop_.now().wall,
                                      [this, alive = std::weak_ptr(alive_)](agent::VolumesSetUp answer) {
                                        if (!alive.expired()) emit(std::move(answer));
                                      });
  if (!queued) fail_all("too many volumes are being made");
}

/// The sandbox of a pod is its network namespace; without a network for pods there is nothing to be made.
void ProcessRuntime::on_command(const agent::RunSandbox& command) {
  const auto answer = [&](std::string problem) { emit(agent::SandboxRan{command.uid, {}, std::move(problem)}); };
  if (!command.handler.empty() && command.handler != kProcessHandler)
    return answer(fmt::format("no runtime for \"{}\" is configured: this node runs processes", command.handler));
  const auto found = pods_.find(command.uid);
  if (found == pods_.end()) return answer(fmt::format("pod {} is unknown", command.uid));
  PodEntry& pod = found->second;
  if (!networks_ || pod.capabilities.is_null()) return answer({});
  if (const Outcome made = ensure_made(pod); !made) return answer(made.error().text());
  if (pod.stopping || shutting_down_) return answer("the pod is being stopped");
  attach_network(pod);
}

void ProcessRuntime::attach_network(PodEntry& pod) {
  const std::string& uid = pod.command.uid;
  const auto failed = [&](const std::string& why) {
    emit(agent::SandboxRan{uid, {}, fmt::format("failed to setup network for sandbox \"{}\": {}", uid, why)});
  };
  if (!pod.isolated.namespaces || !pod.isolated.namespaces->has_network()) return failed("it has no network namespace");
  UniqueFd network(::fcntl(pod.isolated.namespaces->network(), F_DUPFD_CLOEXEC, 3));
  if (!network) return failed(errno_error("network of the pod", errno).text());
  pod.network = NetworkState::kAttached;
  networks_->attach(
      {.uid = uid, .pod = pod.command.pod, .capabilities = pod.capabilities, .network = std::move(network)},
      [this, alive = std::weak_ptr(alive_), uid](Result<std::vector<std::string>> ips) {
        if (alive.expired()) return;
        if (ips) return emit(agent::SandboxRan{uid, *std::move(ips), {}});
        const auto found = pods_.find(uid);
        if (found != pods_.end() && found->second.network == NetworkState::kAttached)
          found->second.network = NetworkState::kNone;
        emit(agent::SandboxRan{
            uid, {}, fmt::format("failed to setup network for sandbox \"{}\": {}", uid, ips.error().text())});
      });
}

/// Ends the attachment of a pod that runs no container any more. Nothing on the way to PodStopped waits for it.
void ProcessRuntime::leave_network(PodEntry& pod) {
  if (pod.network != NetworkState::kAttached) return;
  pod.network = NetworkState::kLeaving;
  networks_->detach(pod.command.uid, [this, alive = std::weak_ptr(alive_), uid = pod.command.uid] {
    if (alive.expired()) return;
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    found->second.network = NetworkState::kLeft;
    settle(uid);
  });
}

bool ProcessRuntime::is_at_rest(const PodEntry& pod) const {
  const bool has_network = pod.network == NetworkState::kAttached || pod.network == NetworkState::kLeaving;
  return pod.containers.empty() && !has_network;
}

void ProcessRuntime::change_target(PodEntry& pod) {
  pod.target.reset();
  if (targets_changed_) targets_changed_();
}

std::shared_ptr<const ReactionTarget> ProcessRuntime::find_target(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.broken || !found->second.cgroup) return nullptr;
  PodEntry& pod = found->second;
  if (!pod.target) {
    std::vector<std::shared_ptr<ContainerHandle>> handles;
    for (const auto& [name, container] : pod.containers)
      if (container->is_running()) handles.push_back(container->handle());
    pod.target =
        std::make_shared<const ReactionTarget>(slice_.parent_of(pod.command.qos), pod.cgroup, std::move(handles));
  }
  return pod.target;
}

void ProcessRuntime::on_command(const agent::RunInContainer& command) {
  const auto pod = pods_.find(command.uid);
  if (pod != pods_.end()) {
    const auto container = pod->second.containers.find(command.container);
    if (container != pod->second.containers.end())
      return commands_.run(command, container->second->entry(command.argv));
  }
  commands_.run(command, make_error(ErrorCode::kNotFound, "container not found (\"{}\")", command.container));
}

void ProcessRuntime::on_command(const agent::StopContainer& command) {
  const auto pod = pods_.find(command.uid);
  if (pod == pods_.end()) return;
  const auto container = pod->second.containers.find(command.name);
  if (container != pod->second.containers.end()) container->second->stop(command.grace);
}

void ProcessRuntime::stop_pod(PodEntry& pod, Duration grace) {
  pod.stopping = true;
  for (const auto& [name, container] : pod.containers) container->stop(grace);
}

void ProcessRuntime::on_command(const agent::StopPod& command) {
  const auto pod = pods_.find(command.uid);
  if (pod == pods_.end()) return emit(agent::PodStopped{command.uid});
  pod->second.stop_asked = true;
  if (command.storage_freed && pod->second.freeing == FreeState::kUnasked) pod->second.freeing = FreeState::kAsked;
  stop_pod(pod->second, command.grace);
  settle(command.uid);
}

void ProcessRuntime::on_command(const agent::RemovePod& command) {
  const auto pod = pods_.find(command.uid);
  if (pod == pods_.end()) return;
  pod->second.removing = true;
  stop_pod(pod->second, Duration::zero());
  settle(command.uid);
}

void ProcessRuntime::on_command(const agent::RemoveContainer& command) {
  const auto pod = pods_.find(command.uid);
  if (pod == pods_.end() || pod->second.directory.empty() || !is_plain_name(command.name)) return;
  const std::string folder = fmt::format("{}/{}", pod->second.directory, command.name);
  const std::string log = fmt::format("{}/{}.log", folder, command.attempt);
  if (is_log_live(log)) return;
  const bool queued = files_.submit([folder, log]() -> runtime::Loop::Task {
    ignored(delete_log(folder, log), "it goes with the pod");
    return {};
  });
  if (!queued) log_.warning("log of an ended container not removed", {{"log", log}});
}

void ProcessRuntime::on_command(const agent::LimitGroup& command) {
  CgroupLimits limits{
      .memory = command.limits.memory, .pids = command.limits.pids_max, .huge_pages = command.limits.huge_pages};
  if (command.limits.cpu_milli) limits.cpu_shares = cpu_shares_of(*command.limits.cpu_milli);
  if (command.group == agent::LimitedGroup::kPods) {
    return emit(agent::GroupLimited{command.group, apply_limits(slice_.kubepods(), limits)});
  }
  const Result<CgroupDir> root = slice_.measured().hierarchy_root();
  emit(agent::GroupLimited{command.group,
                           root ? limit_reserved(*root, command.cgroup, std::move(limits)) : Outcome(root.error())});
}

void ProcessRuntime::on_command(const agent::ShareCpus& command) {
  shared_cpus_ = command.cpus;
  for (const auto& [uid, pod] : pods_)
    for (const auto& [name, container] : pod.containers) container->share_cpus(shared_cpus_);
}

void ProcessRuntime::on_command(const agent::SaveCheckpoint& command) {
  checkpoints_.save(command.file, command.text);
}

void ProcessRuntime::on_started(agent::ContainerStarted event) {
  release_holder(pods_.at(event.uid));
  emit(std::move(event));
}

void ProcessRuntime::on_failed(agent::ContainerStartFailed event) {
  const std::string uid = event.uid;
  const std::string name = event.name;
  const auto container = pods_.at(uid).containers.find(name);
  if (container != pods_.at(uid).containers.end())
    if (auto supervisor = container->second->release_supervisor()) quit(*std::move(supervisor));
  emit(std::move(event));
  forget_container(uid, name);
}

void ProcessRuntime::on_exited(agent::ContainerExited event) {
  const std::string uid = event.uid;
  const std::string name = event.name;
  PodEntry& pod = pods_.at(uid);
  if (const auto ended = pod.containers.find(name); ended != pod.containers.end()) {
    const agent::StartContainer& command = ended->second->command();
    const bool has_file = std::ranges::any_of(command.files, &agent::ManagedFile::is_message);
    std::string message =
        read_termination_message({.message_file = has_file ? message_file(file_folder(pod, name)) : "",
                                  .log = ended->second->log_path(),
                                  .from_logs = command.message_from_logs,
                                  .exit_code = event.exit_code,
                                  .reason = {},
                                  .message = {}});
    if (event.message.empty()) event.message = std::move(message);
    note_end(pod, *ended->second, event);
  }
  emit(std::move(event));
  forget_container(uid, name);
}

void ProcessRuntime::dispose(UniqueFd mounts) {
  const auto held = std::make_shared<UniqueFd>(std::move(mounts));
  const bool queued = files_.submit([held]() -> runtime::Loop::Task {
    held->reset();
    return {};
  });
  if (!queued) log_.warning("a mount namespace is closed late", {{"node", slice_.options().node}});
}

void ProcessRuntime::forget_container(const std::string& uid, const std::string& name) {
  PodEntry& pod = pods_.at(uid);
  pod.containers.erase(name);
  change_target(pod);
  settle(uid);
}

void ProcessRuntime::settle(const std::string& uid) {
  PodEntry& pod = pods_.at(uid);
  if (!pod.containers.empty()) return;
  if (pod.freeing == FreeState::kAsked && !pod.removing) return free_storage(uid);
  if (pod.freeing == FreeState::kRunning && !pod.removing) return;
  if (pod.stopping) {
    release_holder(pod);
    release_volumes(pod);
    leave_network(pod);
  }
  if (pod.stop_asked) emit(agent::PodStopped{uid});
  pod.stop_asked = false;
  if (pod.removing && is_at_rest(pod)) remove_pod(uid);
  const bool idle = std::ranges::all_of(pods_, [this](const auto& entry) { return is_at_rest(entry.second); });
  if (shutting_down_ && idle && on_shut_down_) loop_.post(std::exchange(on_shut_down_, {}));
}

void ProcessRuntime::remove_pod(const std::string& uid) {
  const auto entry = pods_.find(uid);
  PodEntry pod = std::move(entry->second);
  pods_.erase(entry);
  update_class_shares();
  release_holder(pod);
  release_volumes(pod);
  release_ids(pod);
  if (pod.cgroup) remove_pod_cgroup(pod.command.qos, "pod" + uid, 0);
  if (pod.directory.empty()) return;
  // The end of a mount namespace waits for all processors.
  const auto namespaces = std::make_shared<std::optional<PodNamespaces>>(std::move(pod.isolated.namespaces));
  const bool queued = files_.submit([directory = pod.directory, namespaces]() -> runtime::Loop::Task {
    namespaces->reset();
    std::error_code error;
    fs::remove_all(directory, error);
    return {};
  });
  if (!queued) log_.warning("pod directory not removed", {{"directory", pod.directory}});
}

/// The kernel may hold a cgroup for a moment after its last process has ended.
void ProcessRuntime::remove_pod_cgroup(api::QosClass qos, const std::string& name, int tries) {
  const auto is_known = std::ranges::any_of(pods_, [&](const auto& pod) { return "pod" + pod.first == name; });
  if (is_known) return;  // made anew
  const Outcome removed = remove_tree(slice_.parent_of(qos), name);
  if (removed) return;
  if (removed.error().code != ErrorCode::kConflict || tries == kCgroupRemovalTriesMax)
    return log_.warning("pod cgroup not removed", {{"cgroup", name}, {"error", removed.error().text()}});
  loop_.at(loop_.now().mono + milliseconds(10), [this, alive = std::weak_ptr(alive_), qos, name, tries] {
    if (!alive.expired()) remove_pod_cgroup(qos, name, tries + 1);
  });
}

void ProcessRuntime::keep_house() {
  loop_.at(loop_.now().mono + options_.housekeeping, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    const auto removed = orphans_.clear([this](std::string_view uid) { return pods_.contains(std::string(uid)); });
    for (const std::string& path : removed) log_.warning("orphaned pod cgroup removed", {{"cgroup", path}});
    clear_strays();
    keep_house();
  });
}

void ProcessRuntime::update_class_shares() {
  std::vector<const agent::CreatePod*> commands;
  for (const auto& [uid, pod] : pods_) commands.push_back(&pod.command);
  for (const api::QosClass qos : {api::QosClass::kBurstable, api::QosClass::kBestEffort}) {
    ignored(apply_limits(slice_.parent_of(qos), class_limits(qos, commands, {})),
            "shares only weigh; the next pod sets them again");
  }
}

void ProcessRuntime::shutdown(Duration grace, std::function<void()> done) {
  shutting_down_ = true;
  on_shut_down_ = std::move(done);
  if (networks_) networks_->end();
  bool idle = true;
  for (auto& [uid, pod] : pods_) {
    stop_pod(pod, grace);
    if (pod.containers.empty()) {
      release_holder(pod);
      leave_network(pod);
    }
    idle = idle && is_at_rest(pod);
  }
  if (idle && on_shut_down_) loop_.post(std::exchange(on_shut_down_, {}));
}

const ProcessRuntime::PodEntry* ProcessRuntime::find_pod(const api::PodKey& pod) const {
  const PodEntry* found = nullptr;
  for (const auto& [uid, entry] : pods_) {
    // A pod that was made anew lives beside the remains of its namesake.
    if (entry.command.pod == pod && (found == nullptr || found->stopping)) found = &entry;
  }
  return found;
}

bool ProcessRuntime::is_log_live(const std::string& path) const {
  return std::ranges::any_of(pods_, [&](const auto& pod) {
    return std::ranges::any_of(pod.second.containers,
                               [&](const auto& container) { return container.second->log_path() == path; });
  });
}

Result<ContainerAccess> ProcessRuntime::enter(const api::PodKey& pod, const std::string& uid,
                                              const std::string& container, std::vector<std::string> argv) {
  const PodEntry* entry = find_pod(pod);
  if (entry == nullptr || (!uid.empty() && entry->command.uid != uid))
    return make_error(ErrorCode::kNotFound, "pod does not exist");
  const auto found = entry->containers.find(container);
  if (found == entry->containers.end())
    return make_error(ErrorCode::kInternalError, "container not found (\"{}\")", container);
  Result<EntryPlan> plan = found->second->entry(std::move(argv));
  if (!plan && plan.error().code == ErrorCode::kNotFound)
    return make_error(ErrorCode::kInternalError, "{}", plan.error().text());
  if (!plan) return plan.error();
  return ContainerAccess{*std::move(plan), found->second->process()};
}

Result<std::shared_ptr<ContainerConsole>> ProcessRuntime::console(const api::PodKey& pod, const std::string& uid,
                                                                  const std::string& container) const {
  const PodEntry* entry = find_pod(pod);
  if (entry == nullptr || (!uid.empty() && entry->command.uid != uid))
    return make_error(ErrorCode::kNotFound, "pod does not exist");
  const auto found = entry->containers.find(container);
  if (found == entry->containers.end() || !found->second->is_running())
    return make_error(ErrorCode::kInternalError, "container not found (\"{}\")", container);
  return found->second->console();
}

Result<PortSession::Dial> ProcessRuntime::dial(const api::PodKey& pod, const std::string& uid) {
  const PodEntry* entry = find_pod(pod);
  if (entry == nullptr || (!uid.empty() && entry->command.uid != uid))
    return make_error(ErrorCode::kNotFound, "pod not found");
  if (entry->containers.empty())
    return make_error(ErrorCode::kInternalError, "pod not found (\"{}_{}\")", pod.name, pod.ns);
  return [this, alive = std::weak_ptr(alive_), found = entry->command.uid](std::uint16_t port,
                                                                           PortSession::Answer answer) {
    if (!alive.expired()) connect(found, port, std::move(answer));
  };
}

void ProcessRuntime::connect(const std::string& uid, std::uint16_t port, PortSession::Answer answer) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.broken) return answer(make_error(ErrorCode::kNotFound, "the pod is gone"));
  const PodEntry& pod = found->second;
  PortTarget target{.network = {},
                    .all_of_machine = pod.command.host_network,
                    .processes = tree_pids(pod.cgroup).value_or(std::vector<pid_t>()),
                    .cgroup = "pod" + uid};
  if (pod.isolated.namespaces && pod.isolated.namespaces->has_network())
    target.network.reset(::fcntl(pod.isolated.namespaces->network(), F_DUPFD_CLOEXEC, 3));
  if (pod.isolated.namespaces && pod.isolated.namespaces->has_network() && !target.network)
    return answer(errno_error("network of the pod", errno));
  ports_.connect(std::move(target), port, std::move(answer));
}

Result<std::string> ProcessRuntime::find_log(const api::PodKey& pod, const std::string& container,
                                             std::int32_t attempt) const {
  const PodEntry* entry = find_pod(pod);
  if (entry == nullptr) return make_error(ErrorCode::kNotFound, "pod \"{}\" does not exist", pod.text());
  if (!is_plain_name(container)) return invalid("container", "\"{}\" cannot name a container", container);
  const fs::path file = fs::path(entry->directory) / container / fmt::format("{}.log", attempt);
  std::error_code error;
  if (fs::exists(file, error)) return file.string();
  return make_error(ErrorCode::kNotFound, "container \"{}\" in pod \"{}\": the log of attempt {} is gone", container,
                    pod.name, attempt);
}

std::optional<std::int32_t> ProcessRuntime::attempt_of(const std::string& container_id) const {
  return agent::attempt_of(container_id);
}

std::vector<api::PodKey> ProcessRuntime::pods() const {
  std::vector<api::PodKey> keys;
  keys.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) keys.push_back(pod.command.pod);
  return keys;
}

}  // namespace spillway::host
