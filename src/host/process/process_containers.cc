#include "host/process/process_containers.h"

#include "base/file.h"
#include "host/devices/device_access.h"
#include "host/disk/dead_containers.h"
#include "host/pods/termination_message.h"
#include "host/process/pod_root.h"
#include "host/volumes/managed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

namespace spillway::host {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool has_variable(const agent::StartContainer& command, std::string_view name) {
  return std::ranges::any_of(command.env, [&](const auto& entry) { return entry.first == name; });
}

}  // namespace

ProcessContainers::ProcessContainers(const ProcessHost& host, ProcessPods& pods, Means means)
    : host_(host),
      pods_(pods),
      means_(means),
      program_folder_(std::filesystem::path(own_program()).parent_path().string()) {}

ProcessContainers::~ProcessContainers() = default;

void ProcessContainers::start(agent::StartContainer command) {
  ProcessPod* pod = pods_.find(command.uid);
  const std::size_t count = pods_.all().size();
  if (pod == nullptr)
    return refuse(command, "CreateContainerError",
                  count >= host_.options.pods_max ? fmt::format("this node runs {} pods already", count)
                                                  : fmt::format("pod {} is unknown", command.uid));
  if (const Outcome made = means_.maker.ensure_made(*pod); !made)
    return refuse(command, "CreateContainerError", made.error().text());
  if (pod->stopping || pods_.is_closing()) return refuse(command, "RunContainerError", "the pod is being stopped");
  if (!is_plain_name(command.name) || command.name.starts_with('_'))
    return refuse(command, "CreateContainerError", fmt::format("\"{}\" cannot name a container", command.name));
  if (pod->containers.contains(command.name) || pod->awaited.contains(command.name))
    return refuse(command, "CreateContainerError", fmt::format("container \"{}\" is still running", command.name));
  const DeviceView sees = pod->command.isolation.confined ? DeviceView::kOwn : DeviceView::kHost;
  if (const Outcome devices = check_device_access(command.devices, sees); !devices)
    return refuse(command, "CreateContainerError", devices.error().text());
  complete(*pod, command);
  if (const Outcome made = make_directories(fmt::format("{}/{}", pod->directory, command.name)); !made)
    return refuse(command, "CreateContainerError", made.error().text());
  if (pod->volumes && !(command.volumes.empty() && command.files.empty())) return open_mounts(*pod, std::move(command));
  launch(*pod, command, {});
}

void ProcessContainers::complete(const ProcessPod& pod, agent::StartContainer& command) const {
  const agent::PodIsolation& isolation = pod.command.isolation;
  const std::string work = isolation.confined ? std::string(kPodHome) : pod.work_folder();
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
}

void ProcessContainers::open_mounts(ProcessPod& pod, agent::StartContainer command) {
  // The thread of volumes may keep a copy of the answer's function for a while: the claim ends with the answer.
  const auto start =
      std::make_shared<MountedStart>(pod.identity, pod.awaited.claim(command.name, command.image), command);
  VolumeThread::Mounts wanted{.container = command.name,
                              .volumes = command.volumes,
                              .files = command.files,
                              .folder = pod.file_folder(command.name),
                              .first_id = *pod.isolated.first_id};
  const bool queued = means_.volumes.open(
      pod.volumes, std::move(wanted),
      alive_.guard([this, start](Result<std::vector<OpenedMount>> opened) { on_mounts(*start, std::move(opened)); }));
  if (queued) return;
  start->claim.reset();
  refuse(command, "CreateContainerError", "too many volumes are being made");
}

/// Mounts of a pod that was removed are closed. If another pod has its uid now, nothing waits for this start.
void ProcessContainers::on_mounts(MountedStart& start, Result<std::vector<OpenedMount>> opened) {
  start.claim.reset();
  const agent::StartContainer& command = start.command;
  if (pods_.is_made_anew(command.uid, start.pod)) return;
  ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return refuse(command, "RunContainerError", "the pod is gone");
  if (!opened) {
    refuse(command, "CreateContainerConfigError", opened.error().text());
  } else if (pod->stopping || pods_.is_closing()) {
    refuse(command, "RunContainerError", "the pod is being stopped");
  } else {
    launch(*pod, command, *std::move(opened));
  }
  means_.ends.advance(command.uid);
}

void ProcessContainers::launch(ProcessPod& pod, const agent::StartContainer& command, std::vector<OpenedMount> mounts) {
  Result<UniqueFd> pids = target_pids(pod, command.target);
  if (!pids) return refuse(command, "CreateContainerConfigError", pids.error().message);
  ContainerProcess::Start start = start_of(pod, command);
  start.mounts = std::move(mounts);
  start.pids = *std::move(pids);
  start.supervision = means_.supervisors.supervision(means_.volumes.mounts());
  auto container = std::make_unique<ContainerProcess>(host_.loop, host_.log,
                                                      static_cast<ContainerProcess::Owner&>(*this), std::move(start));
  if (const Outcome started = container->start(); !started)
    return refuse(command, "CreateContainerError", started.error().text());
  pod.containers.emplace(command.name, std::move(container));
  pods_.change_target(pod);
}

/// The pid namespace of a container that another one is to see; empty: there is no target.
Result<UniqueFd> ProcessContainers::target_pids(const ProcessPod& pod, const std::string& target) {
  if (target.empty()) return UniqueFd();
  const auto found = pod.containers.find(target);
  if (found == pod.containers.end())
    return make_error(ErrorCode::kNotFound, "unable to find target container {}", target);
  return found->second->pids();
}

ContainerProcess::Start ProcessContainers::start_of(ProcessPod& pod, const agent::StartContainer& command) const {
  return {.command = command,
          .pod = &pod.cgroup,
          .namespaces = pod.isolated.namespaces ? &*pod.isolated.namespaces : nullptr,
          .sysctls = pod.command.isolation.sysctls,
          .log_path = pod.log_path(command.name, command.attempt),
          .log_limits = host_.options.logs,
          .open_files_max = open_files_max_,
          .first_id = pod.isolated.first_id,
          .own_pids = !pod.command.isolation.host_pids,
          .mounts = {},
          .pids = {}};
}

Outcome ProcessContainers::adopt(ProcessPod& pod, Supervisor supervisor, const agent::StartContainer& command) {
  auto container = std::make_unique<ContainerProcess>(
      host_.loop, host_.log, static_cast<ContainerProcess::Owner&>(*this), start_of(pod, command));
  SPILLWAY_TRY_VOID(container->adopt(std::move(supervisor)));
  pod.containers.emplace(command.name, std::move(container));
  return {};
}

void ProcessContainers::stop(const agent::StopContainer& command) {
  if (ContainerProcess* container = pods_.find_container(command.uid, command.name)) container->stop(command.grace);
}

void ProcessContainers::remove(const agent::RemoveContainer& command) {
  const ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr || pod->directory.empty() || !is_plain_name(command.name)) return;
  const std::string folder = fmt::format("{}/{}", pod->directory, command.name);
  const std::string log = pod->log_path(command.name, command.attempt);
  if (pods_.is_log_live(log)) return;
  const bool queued = means_.files.submit([folder, log]() -> runtime::Loop::Task {
    ignored(delete_log(folder, log), "it goes with the pod");
    return {};
  });
  if (!queued) host_.log.warning("log of an ended container not removed", {{"log", log}});
}

void ProcessContainers::share_cpus(const agent::ShareCpus& command) {
  shared_cpus_ = command.cpus;
  for (const auto& [uid, pod] : pods_.all())
    for (const auto& [name, container] : pod.containers) container->share_cpus(shared_cpus_);
}

void ProcessContainers::refuse(const agent::StartContainer& command, std::string_view reason, std::string message) {
  host_.events.emit(
      agent::ContainerStartFailed{command.uid, command.name, command.attempt, std::string(reason), std::move(message)});
}

void ProcessContainers::on_started(agent::ContainerStarted event) {
  means_.supervisors.release_holder(*pods_.find(event.uid));
  host_.events.emit(std::move(event));
}

void ProcessContainers::on_failed(agent::ContainerStartFailed event) {
  const std::string uid = event.uid;
  const std::string name = event.name;
  if (ContainerProcess* container = pods_.find_container(uid, name))
    if (auto supervisor = container->release_supervisor()) means_.supervisors.quit(*std::move(supervisor));
  host_.events.emit(std::move(event));
  forget(uid, name);
}

void ProcessContainers::on_exited(agent::ContainerExited event) {
  const std::string uid = event.uid;
  const std::string name = event.name;
  ProcessPod& pod = *pods_.find(uid);
  if (ContainerProcess* ended = pods_.find_container(uid, name)) {
    const agent::StartContainer& command = ended->command();
    const bool has_file = std::ranges::any_of(command.files, &agent::ManagedFile::is_message);
    std::string message = read_termination_message({.message_file = has_file ? message_file(pod.file_folder(name)) : "",
                                                    .log = ended->log_path(),
                                                    .from_logs = command.message_from_logs,
                                                    .exit_code = event.exit_code,
                                                    .reason = {},
                                                    .message = {}});
    if (event.message.empty()) event.message = std::move(message);
    means_.supervisors.record_end(pod, *ended, event);
  }
  host_.events.emit(std::move(event));
  forget(uid, name);
}

void ProcessContainers::dispose(UniqueFd mounts) {
  const auto held = std::make_shared<UniqueFd>(std::move(mounts));
  const bool queued = means_.files.submit([held]() -> runtime::Loop::Task {
    held->reset();
    return {};
  });
  if (!queued) host_.log.warning("a mount namespace is closed late", {{"node", host_.slice.options().node}});
}

void ProcessContainers::forget(const std::string& uid, const std::string& name) {
  ProcessPod& pod = *pods_.find(uid);
  pod.containers.erase(name);
  pods_.change_target(pod);
  means_.ends.advance(uid);
}

}  // namespace spillway::host
