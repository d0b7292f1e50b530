#include "host/containers/cri_container_start.h"

#include "agent/cri/container_config.h"
#include "agent/cri/image_name.h"
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace spillway::host {
namespace {

using api::Json;

constexpr auto kStepsOfContainerStart = [] {
  using enum ContainerStartStep;
  return std::array{kCheck, kImage, kInspectImage, kMounts, kCreate, kStart, kStatus};
}();

/// Creates the file for a container's termination message.
Result<std::string> make_termination_log(const std::string& folder, std::int32_t attempt) {
  SPILLWAY_TRY_VOID(make_directories(folder));
  const std::string path = fmt::format("{}/{:08x}", folder, attempt);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd || ::fchmod(fd.get(), 0666) != 0) return errno_error(path, errno);
  return path;
}

const api::Container* container_in(const api::Pod& pod, std::string_view name) {
  for (const auto* list : {&pod.spec.containers, &pod.spec.init_containers, &pod.spec.ephemeral_containers}) {
    const auto found = std::ranges::find(*list, name, &api::Container::name);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

}  // namespace

CriContainerStart::CriContainerStart(const ContainerStartMeans& means, agent::StartContainer command)
    : CriRun(kStepsOfContainerStart), means_(means), command_(std::move(command)), asked_(means.host.loop.now().mono) {
  if (const CriPod* pod = means_.pods.find(command_.uid)) pod_ = pod->identity;
}

Next CriContainerStart::run(ContainerStartStep step) {
  switch (step) {
    case ContainerStartStep::kCheck:
      return check();
    case ContainerStartStep::kImage:
      return ensure_image();
    case ContainerStartStep::kInspectImage:
      return inspect_image();
    case ContainerStartStep::kMounts:
      return place_mounts();
    case ContainerStartStep::kCreate:
      return create();
    case ContainerStartStep::kStart:
      return start();
    case ContainerStartStep::kStatus:
      return ask_status();
  }
  return Next::kEnd;
}

Next CriContainerStart::check() {
  CriPod* pod = means_.pods.find(command_.uid, pod_);
  if (pod == nullptr) return refuse("CreateContainerError", fmt::format("pod {} is unknown", command_.uid));
  if (pod->broken) return refuse("CreateContainerError", pod->broken->text());
  if (!is_plain_name(command_.name) || command_.name.starts_with('_'))
    return refuse("CreateContainerError", fmt::format("\"{}\" cannot name a container", command_.name));
  const api::Container* spec = command_.definition ? container_in(*command_.definition, command_.name) : nullptr;
  if (spec == nullptr) return refuse("CreateContainerError", "it came without its definition");
  if (const Outcome followed = means_.sandboxes.follow(*pod, command_); !followed)
    return refuse("CreateContainerConfigError", followed.error().text());
  claim_ = pod->starting.claim(command_.name, spec->image);
  if (claim_ == nullptr)
    return refuse("CreateContainerError", fmt::format("container \"{}\" is being started", command_.name));
  image_name_ = spec->image;
  return find_pod() == nullptr ? Next::kEnd : Next::kStep;
}

Next CriContainerStart::ensure_image() {
  const api::Container& spec = *container_in(*command_.definition, command_.name);
  means_.images.ensure(
      {.image = {command_.uid, image_name_, agent::pull_policy_of(image_name_, spec.image_pull_policy)},
       .container = command_.name,
       .secrets = command_.pull_secrets,
       .asked = asked_},
      [self = shared_from_this()](const std::optional<agent::ImageRefusal>& refusal) { self->on_image(refusal); });
  return Next::kWait;
}

void CriContainerStart::on_image(const std::optional<agent::ImageRefusal>& refusal) {
  if (refusal) {
    refuse(refusal->reason, refusal->message);
  } else {
    advance();
  }
}

Next CriContainerStart::inspect_image() {
  if (find_pod() == nullptr) return Next::kEnd;
  host().calls.call("ImageStatus", image_request(agent::parse_image_name(image_name_)->to_pull), kRuntimeCallMax,
                    then(&CriContainerStart::on_image_status));
  return Next::kWait;
}

Next CriContainerStart::on_image_status(const Result<Json>& status) {
  if (!status) return refuse("CreateContainerConfigError", rpc_text(status.error()));
  const Json* image = status->find("image");
  image_ = image == nullptr ? Json::object() : *image;
  return Next::kStep;
}

Next CriContainerStart::place_mounts() {
  const CriPod* pod = find_pod();
  if (pod == nullptr) return Next::kEnd;
  VolumeThread::Mounts wanted{.container = command_.name,
                              .volumes = command_.volumes,
                              .files = command_.files,
                              .folder = fmt::format("{}/_files/{}", pod->directory, command_.name)};
  const bool queued = means_.volumes.place(pod->volumes, std::move(wanted), then(&CriContainerStart::on_mounts));
  return queued ? Next::kWait : refuse("CreateContainerError", "too many volumes are being made");
}

Next CriContainerStart::on_mounts(Result<std::vector<PlacedMount>> placed) {
  if (!placed) return refuse("CreateContainerConfigError", placed.error().text());
  mounts_ = *std::move(placed);
  return Next::kStep;
}

Next CriContainerStart::create() {
  const CriPod* pod = find_pod();
  if (pod == nullptr) return Next::kEnd;
  if (const Outcome made = make_files(*pod); !made) return refuse("CreateContainerConfigError", made.error().text());
  auto config = configure(*pod);
  if (!config) return refuse("CreateContainerConfigError", config.error().message);
  if (pod->sandbox.empty()) return refuse("CreateContainerError", "the pod has no sandbox");
  Json request = Json::object(
      {{"pod_sandbox_id", pod->sandbox}, {"config", *std::move(config)}, {"sandbox_config", pod->sandbox_config}});
  host().calls.call("CreateContainer", std::move(request), kRuntimeCallMax, then(&CriContainerStart::on_created));
  return Next::kWait;
}

/// The file of the termination message, and the folder of the log.
Outcome CriContainerStart::make_files(const CriPod& pod) {
  SPILLWAY_TRY(file, make_termination_log(fmt::format("{}/_ends/{}", pod.directory, command_.name), command_.attempt));
  termination_log_ = std::move(file);
  return make_directories(fmt::format("{}/{}", pod.logs, command_.name));
}

Result<Json> CriContainerStart::configure(const CriPod& pod) {
  agent::ContainerWish wish;
  wish.restart_count = command_.attempt;
  wish.image_ref = image_.string_at({"id"});
  for (const auto& [name, value] : command_.env) wish.environment.set(name, value);
  for (PlacedMount& each : mounts_)
    wish.mounts.push_back({.container_path = each.binding.container_path,
                           .host_path = std::move(each.host_path),
                           .read_only = each.binding.read_only,
                           .recursively = each.binding.recursively,
                           .propagation = each.binding.propagation});
  wish.termination_log = termination_log_;
  if (!command_.target.empty()) {
    const auto target = pod.containers.find(command_.target);
    if (target == pod.containers.end() || !target->second.running)
      return make_error(ErrorCode::kNotFound, "unable to find target container {}", command_.target);
    wish.target_container = target->second.id;
  }
  wish.resources = host().options.resources;
  wish.security.state_dir = host().options.state_dir;
  wish.security.seccomp_default = host().options.seccomp_default;
  if (const Json* uid = image_.find("uid")) wish.security.image_user.uid = number_in(*uid, {"value"});
  wish.security.image_user.name = image_.string_at({"username"});
  const api::Container& spec = *container_in(*command_.definition, command_.name);
  SPILLWAY_TRY(config, agent::container_config(*command_.definition, spec, wish));
  const agent::Cpuset& cpuset = command_.cpuset;
  const std::string& cpus = cpuset.shares && !means_.shared_cpus.empty() ? means_.shared_cpus : cpuset.cpus;
  if (!cpus.empty()) config.make({"linux", "resources", "cpuset_cpus"}) = cpus;
  if (!cpuset.memory_nodes.empty()) config.make({"linux", "resources", "cpuset_mems"}) = cpuset.memory_nodes;
  host().owner.mark(config);
  return config;
}

Next CriContainerStart::on_created(const Result<Json>& made) {
  if (!made) return refuse_by_runtime("CreateContainerError", made.error().message);
  id_ = made->string_at({"container_id"});
  host().events.notify(command_.uid, command_.name, agent::PodNotice::Weight::kNormal, "Created", "Container created");
  return Next::kStep;
}

/// If the pod was stopped meanwhile, the created container is removed with its sandbox.
Next CriContainerStart::start() {
  if (find_pod() == nullptr) return Next::kEnd;
  host().calls.call("StartContainer", Json::object({{"container_id", id_}}), kRuntimeCallMax,
                    then(&CriContainerStart::on_started));
  return Next::kWait;
}

Next CriContainerStart::on_started(const Result<Json>& started) {
  return started ? Next::kStep : refuse_by_runtime("RunContainerError", started.error().message);
}

Next CriContainerStart::ask_status() {
  host().calls.call("ContainerStatus", Json::object({{"container_id", id_}}), kRuntimeCallMax,
                    then(&CriContainerStart::on_running));
  return Next::kWait;
}

Next CriContainerStart::on_running(const Result<Json>& status) {
  claim_.reset();
  CriPod* pod = means_.pods.find(command_.uid, pod_);
  if (pod == nullptr) return Next::kEnd;
  CriContainer container;
  container.id = id_;
  container.attempt = command_.attempt;
  container.running = true;
  container.termination_log = termination_log_;
  container.message_from_logs = command_.message_from_logs;
  const std::int64_t nanos = status ? number_in(*status, {"status", "started_at"}) : 0;
  container.started_at =
      nanos > 0 ? WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(nanos))) : host().loop.now().wall;
  means_.cgroups.find(*pod, command_.name, container);
  const WallTime at = container.started_at;
  const auto before = pod->containers.find(command_.name);
  if (before != pod->containers.end()) means_.ends.unwatch(before->second);
  pod->containers.insert_or_assign(command_.name, std::move(container));
  means_.pods.change_target(*pod);
  means_.log_folders.link(pod->command.pod, command_.name, id_, log_in(pod->logs, command_.name, command_.attempt));
  host().events.emit(agent::ContainerStarted{
      .uid = command_.uid,
      .name = command_.name,
      .attempt = command_.attempt,
      .pid = 0,
      .at = at,
      .container_id = means_.pods.container_id(id_),
      .image_id = status ? std::string(status->string_at({"status", "image_ref"})) : std::string()});
  means_.ends.watch(command_.uid, command_.name);
  if (pod->stopping) means_.ends.stop_all(command_.uid, Duration{});
  return Next::kEnd;
}

CriPod* CriContainerStart::find_pod() {
  CriPod* pod = means_.pods.find(command_.uid, pod_);
  if (pod != nullptr && !pod->stopping && !means_.pods.is_closing()) return pod;
  refuse("RunContainerError", "the pod is being stopped");
  return nullptr;
}

Next CriContainerStart::refuse(std::string_view reason, std::string message) {
  claim_.reset();
  if (means_.pods.is_made_anew(command_.uid, pod_)) return Next::kEnd;
  host().events.emit(agent::ContainerStartFailed{command_.uid, command_.name, command_.attempt, std::string(reason),
                                                 std::move(message)});
  return Next::kEnd;
}

Next CriContainerStart::refuse_by_runtime(std::string_view reason, std::string message) {
  const CriPod* pod = means_.pods.find(command_.uid, pod_);
  if (pod == nullptr || pod->stopping || pod->sandbox.empty()) return refuse(reason, std::move(message));
  means_.sandboxes.check(*pod, [self = shared_from_this(), reason = std::string(reason), message = std::move(message)] {
    self->refuse(reason, message);
  });
  return Next::kEnd;
}

}  // namespace spillway::host
