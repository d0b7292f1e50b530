#include "host/process/process_runtime.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/cgroup/cgroup_limits.h"
#include "host/cgroup/reserved_cgroup.h"
#include "host/devices/device_access.h"
#include "host/disk/dead_containers.h"
#include "host/kernel/kernel_file.h"
#include "host/process/termination_message.h"

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

constexpr std::size_t kRemovalsMax = 10'000;
constexpr int kCgroupRemovalsMax = 100;
constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// No container can be called like these.
constexpr std::string_view kWorkFolder = "_work";
constexpr std::string_view kVolumeFolder = "_volumes";
constexpr std::string_view kFileFolder = "_files";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && name != "." && name != ".." && !name.contains('/') &&
         !name.contains('\0');
}

std::string pod_folder(const agent::CreatePod& pod) {
  return fmt::format("{}_{}_{}", pod.pod.ns, pod.pod.name, pod.uid);
}

Outcome make_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return errno_error(path.string(), error.value());
  return {};
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
      files_(loop, kRemovalsMax),
      volumes_(loop),
      commands_(loop, [this](agent::RanInContainer answer) { emit(std::move(answer)); }) {}

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::create(runtime::Loop& loop, const NodeSlice& slice,
                                                               agent::Host::Receiver& receiver, telemetry::Log log,
                                                               ProcessRuntimeOptions options) {
  std::error_code error;
  const fs::path state = fs::absolute(options.state_dir, error);
  if (error || options.state_dir.empty()) return invalid("state directory", "\"{}\" is no path", options.state_dir);
  options.state_dir = state.string();
  options.hidden.push_back(options.state_dir);
  const fs::path pods = state / "pods";
  SPILLWAY_TRY_VOID(make_directory(pods));
  // Only what this runtime makes has two underscores in its name and can be of nobody else.
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::directory_iterator(pods, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error) && std::ranges::count(name, '_') == 2) stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) {
    fs::remove_all(path, error);
    if (error) return errno_error(path.string(), error.value());
  }
  std::unique_ptr<ProcessRuntime> runtime(
      new ProcessRuntime(loop, slice, receiver, std::move(log), std::move(options)));  // NOLINT: private constructor
  runtime->observer_.report_own_cgroup();
  runtime->keep_house();
  runtime->program_folder_ = fs::path(own_program()).parent_path().string();
  if (runtime->options_.isolation == ProcessRuntimeOptions::Isolation::kNamespaces) {
    SPILLWAY_TRY(isolator, PodIsolator::create(pods.string(), runtime->options_.hidden, slice.kubepods().version()));
    runtime->isolator_ = std::move(isolator);
  }
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
  SPILLWAY_TRY_VOID(make_directory(fs::path(pod.directory) / kWorkFolder));
  SPILLWAY_TRY(isolated, isolator_.isolate(command, fmt::format("{}/{}", pod.directory, kWorkFolder)));
  pod.isolated = std::move(isolated);
  if (pod.isolated.first_id) {
    pod.volumes =
        std::make_shared<VolumeSet>(VolumeSetOptions{.directory = fmt::format("{}/{}", pod.directory, kVolumeFolder),
                                                     .first_id = *pod.isolated.first_id,
                                                     .hidden = options_.hidden});
  }
  SPILLWAY_TRY(cgroup, slice_.parent_of(command.qos).create_child("pod" + command.uid));
  pod.cgroup = std::move(cgroup);
  SPILLWAY_TRY_VOID(pod.cgroup.delegate_controllers());
  CgroupLimits limits;
  limits.memory = command.memory_limit;
  limits.pids = command.pids_max;
  limits.cpu_shares = cpu_shares_of(command.qos == api::QosClass::kBestEffort ? 0 : command.cpu_request_milli);
  limits.cpu_quota_micros = cpu_quota_micros_of(command.cpu_limit_milli.value_or(0));
  return apply_limits(pod.cgroup, limits);
}

void ProcessRuntime::release_ids(const PodEntry& pod) {
  if (pod.isolated.first_id) isolator_.release(*pod.isolated.first_id);
}

void ProcessRuntime::on_command(agent::CreatePod command) {
  const auto known = pods_.find(command.uid);
  if (known != pods_.end() && !known->second.broken) return;
  if (known == pods_.end() && pods_.size() >= options_.pods_max) return;  // its containers will say so
  PodEntry pod;
  pod.command = std::move(command);
  pod.created = loop_.now().wall;
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
  if (pod.broken) return refuse(command, "CreateContainerError", pod.broken->text());
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
  if (command.working_dir.empty()) command.working_dir = work;
  // The pool may have changed since the agent said where it is to run.
  if (command.cpuset.shares && !shared_cpus_.empty()) command.cpuset.cpus = shared_cpus_;
  const std::string log_folder = fmt::format("{}/{}", pod.directory, command.name);
  const Outcome made = make_directory(log_folder);
  if (!made) return refuse(command, "CreateContainerError", made.error().text());

  const std::string log_path = fmt::format("{}/{}.log", log_folder, command.attempt);
  if (pod.volumes && !(command.volumes.empty() && command.files.empty()))
    return open_mounts(pod, std::move(command), log_path);
  launch(pod, std::move(command), log_path, {});
}

void ProcessRuntime::launch(PodEntry& pod, agent::StartContainer command, const std::string& log_path,
                            std::vector<OpenedMount> mounts) {
  const agent::PodIsolation& isolation = pod.command.isolation;
  auto container = std::make_unique<ContainerProcess>(
      loop_, log_, static_cast<ContainerProcess::Owner&>(*this),
      ContainerProcess::Start{command, &pod.cgroup, pod.isolated.namespaces ? &*pod.isolated.namespaces : nullptr,
                              isolation.sysctls, log_path, options_.logs, open_files_max_, pod.isolated.first_id,
                              !isolation.host_pids, std::move(mounts)});
  const Outcome started = container->start();
  if (!started) return refuse(command, "CreateContainerError", started.error().text());
  pod.containers.emplace(command.name, std::move(container));
  change_target(pod);
}

/// Where the files are that the node makes for a container.
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
  if (pod.broken) return fail_all(pod.broken->text());
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

/// What is mounted goes, then what is on disk. Nobody waits for it.
void ProcessRuntime::release_volumes(PodEntry& pod) {
  if (!pod.volumes) return;
  const std::string folder = fmt::format("{}/{}", pod.directory, kVolumeFolder);
  const auto remove = [this, alive = std::weak_ptr(alive_), folder] {
    if (alive.expired()) return;
    const bool removing = files_.submit([folder]() -> runtime::Loop::Task {
      std::error_code error;
      fs::remove_all(folder, error);
      return {};
    });
    if (!removing) log_.warning("volumes not removed", {{"directory", folder}});
  };
  if (!volumes_.release(std::exchange(pod.volumes, nullptr), remove))
    log_.warning("volumes not removed", {{"directory", folder}});
}

void ProcessRuntime::change_target(PodEntry& pod) {
  pod.target.reset();
  if (targets_changed_) targets_changed_();
}

std::shared_ptr<const ReactionTarget> ProcessRuntime::find_target(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || found->second.broken) return nullptr;
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
    delete_log(folder, log);
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

void ProcessRuntime::on_command(const agent::Observe& command) {
  Result<api::Summary> seen =
      command.depth == agent::ObserveDepth::kWhole ? observe_now() : observer_.observe_node_memory_alone(loop_.now());
  // Pods, their logs and what they write are below one state directory: one file system, whatever it is.
  emit(agent::Observed{command.id, std::move(seen), command.depth, eviction::StorageLayout{}});
}

void ProcessRuntime::on_command(const agent::ReclaimNode& command) {
  std::vector<PodLogs> logs;
  for (const auto& [uid, pod] : pods_) {
    if (pod.directory.empty()) continue;
    PodLogs& each = logs.emplace_back(PodLogs{pod.directory, {}, {}});
    // A pod that was ended never starts again.
    if (pod.stopping && pod.containers.empty()) each.spent = fmt::format("{}/{}", pod.directory, kWorkFolder);
    for (const auto& [name, container] : pod.containers) each.live.insert(container->log_path());
  }
  const bool queued = files_.submit([this, alive = std::weak_ptr(alive_), command, logs]() -> runtime::Loop::Task {
    agent::Reclaimed done{command.id, {}};
    for (const eviction::ReclaimAction action : command.actions) {
      if (action == eviction::ReclaimAction::kContainers) {
        done.outcomes.push_back(delete_dead_logs(logs));
      } else {
        done.outcomes.push_back(
            {.action = action, .deleted = 0, .freed = {}, .problem = "the process runtime has no images"});
      }
    }
    return [this, alive, done = std::move(done)]() mutable {
      if (!alive.expired()) receiver_.on_host_event(std::move(done));
    };
  });
  if (!queued) log_.warning("too much is being deleted to reclaim anything", {{"node", slice_.options().node}});
}

Result<api::Summary> ProcessRuntime::observe_now() {
  const std::vector<PodView> seen = views();
  return observer_.observe(seen, loop_.now());
}

std::vector<PodView> ProcessRuntime::views() const {
  std::vector<PodView> all;
  all.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) {
    if (pod.broken) continue;
    PodView view{uid,
                 pod.command.pod,
                 &pod.cgroup,
                 fmt::format("{}/{}", pod.directory, kWorkFolder),
                 {},
                 pod.created,
                 pod.command.isolation.network,
                 {}};
    for (const std::string& name : pod.disk_volumes)
      if (pod.volumes)
        view.volumes.push_back(
            {name, fmt::format("{}/{}/kubernetes.io~empty-dir/{}", pod.directory, kVolumeFolder, name)});
    for (const auto& [name, container] : pod.containers)
      if (container->is_running())
        view.containers.push_back({name, &container->cgroup(), container->log_size(), container->started_at()});
    all.push_back(std::move(view));
  }
  return all;
}

void ProcessRuntime::on_started(agent::ContainerStarted event) {
  emit(std::move(event));
}

void ProcessRuntime::on_failed(agent::ContainerStartFailed event) {
  const std::string uid = event.uid;
  const std::string name = event.name;
  emit(std::move(event));
  forget_container(uid, name);
}

void ProcessRuntime::on_exited(agent::ContainerExited event) {
  const std::string uid = event.uid;
  const std::string name = event.name;
  const PodEntry& pod = pods_.at(uid);
  if (const auto ended = pod.containers.find(name); ended != pod.containers.end())
    event.message =
        read_termination_message(ended->second->command(), file_folder(pod, name), ended->second->log_path(), event);
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
  if (pod.stopping) release_volumes(pod);
  if (pod.stop_asked) emit(agent::PodStopped{uid});
  pod.stop_asked = false;
  if (pod.removing) remove_pod(uid);
  const bool idle = std::ranges::all_of(pods_, [](const auto& entry) { return entry.second.containers.empty(); });
  if (shutting_down_ && idle && on_shut_down_) loop_.post(std::exchange(on_shut_down_, {}));
}

void ProcessRuntime::remove_pod(const std::string& uid) {
  const auto entry = pods_.find(uid);
  PodEntry pod = std::move(entry->second);
  pods_.erase(entry);
  update_class_shares();
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
  if (removed.error().code != ErrorCode::kConflict || tries == kCgroupRemovalsMax)
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
    keep_house();
  });
}

void ProcessRuntime::update_class_shares() {
  std::int64_t milli = 0;
  for (const auto& [uid, pod] : pods_)
    if (pod.command.qos == api::QosClass::kBurstable) milli += pod.command.cpu_request_milli;
  ignored(apply_limits(slice_.parent_of(api::QosClass::kBurstable), {.cpu_shares = cpu_shares_of(milli)}),
          "shares only weigh; the next pod sets them again");
  ignored(apply_limits(slice_.parent_of(api::QosClass::kBestEffort), {.cpu_shares = cpu_shares_of(0)}),
          "shares only weigh; the next pod sets them again");
}

void ProcessRuntime::shutdown(Duration grace, std::function<void()> done) {
  shutting_down_ = true;
  on_shut_down_ = std::move(done);
  bool idle = true;
  for (auto& [uid, pod] : pods_) {
    stop_pod(pod, grace);
    idle = idle && pod.containers.empty();
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

std::vector<api::PodKey> ProcessRuntime::pods() const {
  std::vector<api::PodKey> keys;
  keys.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) keys.push_back(pod.command.pod);
  return keys;
}

}  // namespace spillway::host
