// CriRuntime: the start of a pod, from its creation to running containers.
#include "agent/companion/pod_cgroup.h"
#include "agent/cri/container_config.h"
#include "agent/cri/image_credentials.h"
#include "agent/cri/image_name.h"
#include "agent/cri/sandbox_config.h"
#include "base/file.h"
#include "host/companion/foreign_runtime.h"
#include "host/files/resolver_file.h"
#include "host/kernel/pidfd.h"
#include "host/pods/cri_runtime.h"
#include "host/pods/pod_limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;
using api::Json;

constexpr Duration kSandboxMax = minutes(4);
constexpr Duration kPullMax = minutes(60);
constexpr Duration kNetworkRetry = seconds(1);
constexpr std::size_t kPullsMax = 1'000;
constexpr auto kNormal = agent::PodNotice::Weight::kNormal;
constexpr auto kWarning = agent::PodNotice::Weight::kWarning;

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

Json image_request(std::string_view name) {
  return Json::object({{"image", Json::object({{"image", name}})}});
}

/// Credentials of pull Secrets are tried before those of plug-ins.
std::vector<Json> auths_for(const std::string& repository, const std::vector<agent::PullSecret>& secrets,
                            const std::vector<agent::PlacedCredential>& answered, std::string& problem) {
  std::vector<Json> auths;
  auto credentials = agent::credentials_for(repository, secrets);
  if (!credentials) {
    problem = credentials.error().message;
    return auths;
  }
  std::ranges::move(agent::credentials_among(repository, answered), std::back_inserter(*credentials));
  for (const agent::ImageCredential& each : *credentials)
    auths.push_back(Json::object({{"username", each.username}, {"password", each.password}}));
  if (auths.empty()) auths.emplace_back();
  return auths;
}

}  // namespace

std::vector<std::string> CriRuntime::addresses_in(const Json& status) {
  std::vector<std::string> ips;
  if (const std::string_view first = status.string_at({"network", "ip"}); !first.empty()) ips.emplace_back(first);
  const Json* more = status.at({"network", "additional_ips"});
  if (more == nullptr || more->if_array() == nullptr) return ips;
  for (const Json& each : *more->if_array()) ips.emplace_back(each.string_at({"ip"}));
  return ips;
}

std::shared_ptr<ContainerHandle> CriRuntime::make_handle(const CgroupDir& cgroup, const std::string& name) {
  const auto pid = oldest_process(cgroup);
  if (!pid) return nullptr;
  Result<UniqueFd> pidfd = open_pidfd(*pid);
  if (!pidfd || oldest_process(cgroup) != pid) return nullptr;  // already ended, and its number may be reused
  auto handle = std::make_shared<ContainerHandle>();
  handle->name = name;
  handle->pidfd = *std::move(pidfd);
  handle->directory.reset(::fcntl(cgroup.fd(Controller::kMemory), F_DUPFD_CLOEXEC, 3));
  handle->status.reset(::open(fmt::format("/proc/{}/status", *pid).c_str(), O_RDONLY | O_CLOEXEC));
  handle->call.reset(::open(fmt::format("/proc/{}/syscall", *pid).c_str(), O_RDONLY | O_CLOEXEC));
  return handle;
}

Outcome CriRuntime::make_pod(Pod& pod) {
  const agent::CreatePod& command = pod.command;
  if (!is_plain_name(command.uid) || !is_plain_name(command.pod.ns) || !is_plain_name(command.pod.name))
    return invalid("pod", "uid \"{}\", namespace \"{}\" or name \"{}\" cannot name a directory", command.uid,
                   command.pod.ns, command.pod.name);
  if (!command.definition) return invalid("pod", "{} came without its definition", command.pod.text());
  pod.directory = fmt::format("{}/pods/{}_{}_{}", options_.state_dir, command.pod.ns, command.pod.name, command.uid);
  SPILLWAY_TRY_VOID(make_directories(pod.directory));
  pod.logs = log_folders_.folder_of(command.pod, command.uid, pod.directory);
  SPILLWAY_TRY_VOID(make_directories(pod.logs));
  if (!pod.volumes) {
    VolumeSetOptions volumes;
    volumes.directory = pod.directory + "/_volumes";
    pod.volumes = std::make_shared<VolumeSet>(std::move(volumes));
  }
  return options_.slices == nullptr ? open_cgroup(pod) : start_slice(pod);
}

/// The cgroup of a pod, made here unless systemd has made it, with its limits.
Outcome CriRuntime::open_cgroup(Pod& pod) {
  const api::QosClass qos = pod.command.qos;
  SPILLWAY_TRY(child, slice_.pod_child(qos, pod.command.uid));
  SPILLWAY_TRY(cgroup, slice_.parent_of(qos).create_child(child));
  pod.cgroup = std::move(cgroup);
  const Outcome delegated = pod.cgroup.delegate_controllers();
  if (!delegated && options_.slices == nullptr) return delegated;  // systemd enables what its units need
  return apply_limits(pod.cgroup, pod_limits(pod.command, options_.resources));
}

Outcome CriRuntime::start_slice(Pod& pod) {
  const api::QosClass qos = pod.command.qos;
  SPILLWAY_TRY(unit, slice_.pod_unit(qos, pod.command.uid));
  pod.slice_starting = true;
  options_.slices->start(unit, pod_limits(pod.command, options_.resources),
                         [this, alive = std::weak_ptr(alive_), uid = pod.command.uid, qos](Outcome started) {
                           if (!alive.expired()) on_slice(uid, qos, std::move(started));
                         });
  return {};
}

void CriRuntime::on_slice(const std::string& uid, api::QosClass qos, Outcome started) {
  Pod* pod = find(uid);
  if (pod == nullptr) return remove_cgroup(qos, uid, 0);
  pod->slice_starting = false;
  if (started) started = open_cgroup(*pod);
  if (!started) {
    pod->broken = started.error();
    log_.error("pod not made", {{"pod", pod->command.pod.text()}, {"error", started.error().text()}});
  }
  change_target(*pod);
  if (std::exchange(pod->wants_sandbox, false)) run_sandbox(uid);
}

/// The parent cgroup of the pod's sandbox, as the runtime is given it: below the root of the hierarchy.
Result<std::string> CriRuntime::cgroup_path(const Pod& pod) const {
  SPILLWAY_TRY(child, slice_.pod_child(pod.command.qos, pod.command.uid));
  return fmt::format("{}/{}", slice_.parent_of(pod.command.qos).path(), child);
}

/// With systemd's driver the runtime puts its own name before the container's id.
Result<CgroupDir> CriRuntime::open_container(const Pod& pod, const std::string& id) const {
  if (options_.slices == nullptr) return pod.cgroup.open_child(id);
  SPILLWAY_TRY(children, pod.cgroup.children());
  for (const std::string& name : children) {
    const auto container = agent::parse_container_cgroup(name);
    if (container && container->id == id && !container->monitor) return pod.cgroup.open_child(name);
  }
  return make_error(ErrorCode::kNotFound, "{} has no cgroup of container {}", pod.cgroup.path(), id);
}

void CriRuntime::on_command(agent::CreatePod command) {
  Pod* known = find(command.uid);
  if (known != nullptr && !known->broken && !known->command.definition) return claim(*known, std::move(command));
  if (known != nullptr && !known->broken) return;
  if (known == nullptr && pods_.size() >= options_.pods_max) return;  // its sandbox will report it
  Pod pod;
  pod.command = std::move(command);
  pod.created = loop_.now().wall;
  if (const Outcome made = make_pod(pod); !made) {
    pod.broken = made.error();
    log_.error("pod not made", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  }
  const std::string uid = pod.command.uid;
  pods_[uid] = std::move(pod);
  update_class_limits();
}

/// Completes a found pod with its definition.
void CriRuntime::claim(Pod& pod, agent::CreatePod command) {
  if (pod.stopping) return;
  pod.command = std::move(command);
  Outcome made = make_pod(pod);
  if (made && !pod.sandbox.empty()) {
    const auto configured = configure_sandbox(pod);
    if (!configured) made = configured.error();
  }
  if (!made) log_.error("pod taken over in part", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  change_target(pod);
  update_class_limits();
}

void CriRuntime::on_command(const agent::RunSandbox& command) {
  if (Pod* pod = find(command.uid)) pod->handler = command.handler;
  run_sandbox(command.uid);
}

Result<std::vector<agent::DnsWarning>> CriRuntime::configure_sandbox(Pod& pod) const {
  agent::DnsFacts dns = options_.dns;
  if (!options_.resolver_file.empty()) dns.resolv_conf = read_resolver_file(options_.resolver_file);
  SPILLWAY_TRY(parent, cgroup_path(pod));
  agent::SandboxWish wish{.attempt = pod.sandbox_attempt,
                          .cgroup_parent = std::move(parent),
                          .log_directory = pod.logs,
                          .dns = std::move(dns),
                          .resources = options_.resources,
                          .extra_groups = {},
                          .namespaces = {},
                          .unknown_class = {}};  // RunSandbox has resolved the class already
  SPILLWAY_TRY(made, agent::sandbox_config(*pod.command.definition, wish));
  if (!options_.owner.empty()) made.config.make({"labels", kOwnerLabel}) = options_.owner;
  pod.sandbox_config = std::move(made.config);
  return std::move(made.warnings);
}

void CriRuntime::run_sandbox(const std::string& uid) {
  Pod* pod = find(uid);
  const auto fail = [&](std::string why) { emit(agent::SandboxRan{uid, {}, std::move(why)}); };
  if (pod == nullptr) return fail("the pod is unknown, or this node runs too many");
  if (pod->broken) return fail(pod->broken->text());
  if (pod->stopping || shutting_down_) return fail("the pod is being stopped");
  if (pod->slice_starting) {
    pod->wants_sandbox = true;
    return;
  }
  if (!pod->command.host_network && !runtime_status_.network_problem.empty()) {
    tell(uid, {}, kWarning, "NetworkNotReady", "network is not ready: " + runtime_status_.network_problem);
    loop_.at(loop_.now().mono + kNetworkRetry, [this, alive = std::weak_ptr(alive_), uid] {
      const Pod* again = alive.expired() ? nullptr : find(uid);
      if (again != nullptr && !again->stopping) run_sandbox(uid);
    });
    return;
  }
  const auto warnings = configure_sandbox(*pod);
  if (!warnings) return fail(warnings.error().message);
  for (const agent::DnsWarning& each : *warnings)
    if (!each.about_node) tell(uid, {}, kWarning, each.reason, each.message);
  pod->asks_for_sandbox = true;
  stop_lost_sandboxes(uid, {pod->lost_sandboxes.begin(), pod->lost_sandboxes.end()});
}

/// Resources of earlier sandboxes of the pod, above all its network, are released before a new one is created.
void CriRuntime::stop_lost_sandboxes(const std::string& uid, std::vector<std::string> left) {
  Pod* pod = find(uid);
  if (pod == nullptr) return;
  if (pod->stopping) {
    pod->asks_for_sandbox = false;
    return;
  }
  if (left.empty()) return make_sandbox(uid);
  const std::string id = std::move(left.back());
  left.pop_back();
  call("StopPodSandbox", Json::object({{"pod_sandbox_id", id}}), kRuntimeCallMax,
       [this, uid, id, left = std::move(left)](Result<Json> stopped) mutable {
         Pod* again = find(uid);
         if (again == nullptr) return;
         if (!stopped && stopped.error().code != ErrorCode::kNotFound) {
           again->asks_for_sandbox = false;
           return emit(agent::SandboxRan{uid, {}, rpc_text(stopped.error())});
         }
         again->lost_sandboxes.erase(id);
         stop_lost_sandboxes(uid, std::move(left));
       });
}

void CriRuntime::make_sandbox(const std::string& uid) {
  const Pod& pod = *find(uid);
  Json request = Json::object({{"config", pod.sandbox_config}});
  if (!pod.handler.empty()) request["runtime_handler"] = pod.handler;
  call("RunPodSandbox", std::move(request), kSandboxMax, [this, uid, qos = pod.command.qos](Result<Json> ran) {
    Pod* again = find(uid);
    if (again == nullptr) return remove_late_sandbox(uid, qos, ran);
    again->asks_for_sandbox = false;
    if (!ran) return emit(agent::SandboxRan{uid, {}, rpc_text(ran.error())});
    again->sandbox = ran->string_at({"pod_sandbox_id"});
    again->sandbox_since = loop_.now().mono;
    if (again->stopping) return stop_sandbox(uid);
    call("PodSandboxStatus", Json::object({{"pod_sandbox_id", again->sandbox}}), kRuntimeCallMax,
         [this, uid](Result<Json> status) { on_sandbox(uid, status); });
  });
}

/// Removes the sandbox of a pod that was removed meanwhile.
void CriRuntime::remove_late_sandbox(const std::string& uid, api::QosClass qos, const Result<Json>& ran) {
  if (!ran) return remove_cgroup(qos, uid, 0);
  const Json request = Json::object({{"pod_sandbox_id", ran->string_at({"pod_sandbox_id"})}});
  call("StopPodSandbox", request, kRuntimeCallMax, [this, uid, qos, request](Result<Json>) {
    call("RemovePodSandbox", request, kRuntimeCallMax, [this, uid, qos](Result<Json>) { remove_cgroup(qos, uid, 0); });
  });
}

void CriRuntime::on_sandbox(const std::string& uid, const Result<Json>& status) {
  if (!status) {
    tell(uid, {}, kWarning, "FailedPodSandBoxStatus", "Unable to get pod sandbox status: " + rpc_text(status.error()));
    return emit(agent::SandboxRan{uid, {}, rpc_text(status.error())});
  }
  const Json* found = status->find("status");
  emit(agent::SandboxRan{uid, found == nullptr ? std::vector<std::string>() : addresses_in(*found), {}});
}

void CriRuntime::refuse(const agent::StartContainer& command, std::string_view reason, std::string message) {
  if (Pod* pod = find(command.uid)) pod->starting.erase(command.name);
  emit(
      agent::ContainerStartFailed{command.uid, command.name, command.attempt, std::string(reason), std::move(message)});
}

/// Reports a failed create or start. If the failure shows that the sandbox has ended, that is reported first.
void CriRuntime::refuse_by_runtime(const agent::StartContainer& command, std::string_view reason, std::string message) {
  const Pod* pod = find(command.uid);
  if (pod == nullptr || pod->stopping || pod->sandbox.empty()) return refuse(command, reason, std::move(message));
  call("PodSandboxStatus", Json::object({{"pod_sandbox_id", pod->sandbox}}), kSandboxDoubtMax,
       [this, command, id = pod->sandbox, reason, message = std::move(message)](Result<Json> found) mutable {
         on_doubted(command.uid, id, found);
         refuse(command, reason, std::move(message));
       });
}

/// True if the start may continue: at every step the pod may have been stopped or removed.
bool CriRuntime::may_start(const Starting& start) {
  const Pod* pod = find(start.command.uid);
  if (pod != nullptr && !pod->stopping && !shutting_down_) return true;
  refuse(start.command, "RunContainerError", "the pod is being stopped");
  return false;
}

/// Ephemeral containers are added after the sandbox was made, and may need more than it has: the runtime validates each
/// container against the present pod.
Outcome CriRuntime::follow(Pod& pod, const agent::StartContainer& command) {
  const bool has_one = !pod.sandbox_config.is_null();
  if (has_one && pod.command.definition == command.definition) return {};
  pod.command.definition = command.definition;
  const auto made = configure_sandbox(pod);
  if (made) return {};
  if (!has_one) return made.error();  // a found container whose definition could not be read
  log_.warning("sandbox keeps its configuration", {{"pod", pod.command.pod.text()}, {"error", made.error().text()}});
  return {};
}

void CriRuntime::on_command(agent::StartContainer command) {
  Pod* pod = find(command.uid);
  if (pod == nullptr) return refuse(command, "CreateContainerError", fmt::format("pod {} is unknown", command.uid));
  if (pod->broken) return refuse(command, "CreateContainerError", pod->broken->text());
  if (!is_plain_name(command.name) || command.name.starts_with('_'))
    return refuse(command, "CreateContainerError", fmt::format("\"{}\" cannot name a container", command.name));
  const api::Container* spec = command.definition ? container_in(*command.definition, command.name) : nullptr;
  if (spec == nullptr) return refuse(command, "CreateContainerError", "it came without its definition");
  if (const Outcome followed = follow(*pod, command); !followed)
    return refuse(command, "CreateContainerConfigError", followed.error().text());
  if (!pod->starting.emplace(command.name, spec->image).second)
    return refuse(command, "CreateContainerError", fmt::format("container \"{}\" is being started", command.name));
  agent::ImageWanted image{command.uid, spec->image, agent::pull_policy_of(spec->image, spec->image_pull_policy)};
  Starting start{std::move(command), std::move(image), loop_.now().mono};
  if (may_start(start)) want_image(std::move(start));
}

void CriRuntime::want_image(Starting start) {
  if (auto known = images_.begin(start.image, loop_.now().mono))
    return on_image_answer(std::move(start), *std::move(known));
  Json request = image_request(agent::parse_image_name(start.image.image)->to_pull);
  call("ImageStatus", std::move(request), kRuntimeCallMax,
       [this, start = std::move(start)](Result<Json> status) mutable {
         Result<std::string> present = std::string();
         if (!status) present = Error{status.error().code, rpc_text(status.error()), {}};
         if (status && status->find("image") != nullptr) present = std::string(status->string_at({"image", "id"}));
         agent::ImageAnswer answer = images_.on_status(start.image, present, loop_.now().mono);
         on_image_answer(std::move(start), std::move(answer));
       });
}

void CriRuntime::on_image_answer(Starting start, agent::ImageAnswer answer) {
  for (agent::ImageNews& each : answer.news)
    tell(start.command.uid, start.command.name, each.weight, std::move(each.reason), std::move(each.message));
  if (auto* refusal = std::get_if<agent::ImageRefusal>(&answer.what))
    return refuse(start.command, refusal->reason, std::move(refusal->message));
  if (auto* wanted = std::get_if<agent::ImageToPull>(&answer.what)) {
    if (pull_tokens_ && !pull_tokens_->try_take(loop_.now().mono)) {
      ++pulling_;
      return on_pull_ended(std::move(start), Error{ErrorCode::kTooManyRequests, "pull QPS exceeded", {}});
    }
    if (pulls_.size() >= kPullsMax) return refuse(start.command, "ErrImagePull", "too many images are being pulled");
    pulls_.emplace_back(std::move(start), wanted->name);
    return pull_next();
  }
  look_at_image(std::move(start));
}

void CriRuntime::pull_next() {
  while (pulling_ < options_.parallel_pulls && !pulls_.empty()) {
    auto [start, name] = std::move(pulls_.front());
    pulls_.pop_front();
    ++pulling_;
    const auto parsed = agent::parse_image_name(start.image.image);
    std::string repository = parsed ? parsed->repository : std::string();
    const Instant began = loop_.now().mono;
    credential_plugins_.ask(repository, [this, start = std::move(start), name = std::move(name), repository,
                                         began](const std::vector<agent::PlacedCredential>& answered) mutable {
      std::string problem;
      std::vector<Json> auths = auths_for(repository, start.command.pull_secrets, answered, problem);
      pull(std::move(start), name, std::move(auths), std::move(problem), began);
    });
  }
}

/// Tries one credential after the other, until one is accepted.
void CriRuntime::pull(Starting start, const std::string& name, std::vector<Json> auths, std::string last_problem,
                      Instant began) {
  if (auths.empty())
    return on_pull_ended(std::move(start), Error{ErrorCode::kInternalError, std::move(last_problem), {}});
  Json request = image_request(name);
  if (!auths.front().is_null()) request["auth"] = auths.front();
  if (const Pod* pod = find(start.command.uid)) request["sandbox_config"] = pod->sandbox_config;
  auths.erase(auths.begin());
  call("PullImage", std::move(request), kPullMax,
       [this, start = std::move(start), name, auths = std::move(auths), began](Result<Json> pulled) mutable {
         if (!pulled) return pull(std::move(start), name, std::move(auths), rpc_text(pulled.error()), began);
         call("ImageStatus", image_request(name), kRuntimeCallMax,
              [this, start = std::move(start), began](Result<Json> status) mutable {
                const Instant now = loop_.now().mono;
                agent::PulledImage image{.took = now - began, .took_with_waiting = now - start.asked};
                if (status) {
                  image.ref = status->string_at({"image", "id"});
                  image.size_bytes = number_in(*status, {"image", "size"});
                }
                on_pull_ended(std::move(start), image);
              });
       });
}

void CriRuntime::on_pull_ended(Starting start, const Result<agent::PulledImage>& pulled) {
  --pulling_;
  agent::ImageAnswer answer = images_.on_pulled(start.image, pulled, loop_.now().mono);
  on_image_answer(std::move(start), std::move(answer));
  pull_next();
}

/// Reads the user of the image.
void CriRuntime::look_at_image(Starting start) {
  if (!may_start(start)) return;
  Json request = image_request(agent::parse_image_name(start.image.image)->to_pull);
  call("ImageStatus", std::move(request), kRuntimeCallMax,
       [this, start = std::move(start)](Result<Json> status) mutable {
         if (!status) return refuse(start.command, "CreateContainerConfigError", rpc_text(status.error()));
         const Json* image = status->find("image");
         place_mounts(std::move(start), image == nullptr ? Json::object() : *image);
       });
}

void CriRuntime::place_mounts(Starting start, Json image) {
  if (!may_start(start)) return;
  Pod& pod = *find(start.command.uid);
  VolumeThread::Mounts wanted{.container = start.command.name,
                              .volumes = start.command.volumes,
                              .files = start.command.files,
                              .folder = fmt::format("{}/_files/{}", pod.directory, start.command.name)};
  const agent::StartContainer command = start.command;
  const bool queued =
      volumes_.place(pod.volumes, std::move(wanted),
                     [this, alive = std::weak_ptr(alive_), start = std::move(start),
                      image = std::move(image)](Result<std::vector<PlacedMount>> placed) mutable {
                       if (alive.expired()) return;
                       if (!placed) return refuse(start.command, "CreateContainerConfigError", placed.error().text());
                       create_container(std::move(start), image, *std::move(placed));
                     });
  if (!queued) refuse(command, "CreateContainerError", "too many volumes are being made");
}

void CriRuntime::create_container(Starting start, const Json& image, std::vector<PlacedMount> mounts) {
  if (!may_start(start)) return;
  Pod& pod = *find(start.command.uid);
  const agent::StartContainer& command = start.command;
  const api::Container& spec = *container_in(*command.definition, command.name);
  const auto last_words =
      make_termination_log(fmt::format("{}/_ends/{}", pod.directory, command.name), command.attempt);
  const Outcome logs = make_directories(fmt::format("{}/{}", pod.logs, command.name));
  if (!last_words || !logs)
    return refuse(command, "CreateContainerConfigError", last_words ? logs.error().text() : last_words.error().text());
  agent::ContainerWish wish;
  wish.restart_count = command.attempt;
  wish.image_ref = image.string_at({"id"});
  for (const auto& [name, value] : command.env) wish.environment.set(name, value);
  for (PlacedMount& each : mounts)
    wish.mounts.push_back({.container_path = each.binding.container_path,
                           .host_path = std::move(each.host_path),
                           .read_only = each.binding.read_only,
                           .recursively = each.binding.recursively,
                           .propagation = each.binding.propagation});
  wish.termination_log = *last_words;
  if (!command.target.empty()) {
    const auto target = pod.containers.find(command.target);
    if (target == pod.containers.end() || !target->second.running)
      return refuse(command, "CreateContainerConfigError",
                    fmt::format("unable to find target container {}", command.target));
    wish.target_container = target->second.id;
  }
  wish.resources = options_.resources;
  wish.security.state_dir = options_.state_dir;
  wish.security.seccomp_default = options_.seccomp_default;
  if (const Json* uid = image.find("uid")) wish.security.image_user.uid = number_in(*uid, {"value"});
  wish.security.image_user.name = image.string_at({"username"});
  auto config = agent::container_config(*command.definition, spec, wish);
  if (!config) return refuse(command, "CreateContainerConfigError", config.error().message);
  const agent::Cpuset& cpuset = command.cpuset;
  const std::string& cpus = cpuset.shares && !shared_cpus_.empty() ? shared_cpus_ : cpuset.cpus;
  if (!cpus.empty()) config->make({"linux", "resources", "cpuset_cpus"}) = cpus;
  if (!cpuset.memory_nodes.empty()) config->make({"linux", "resources", "cpuset_mems"}) = cpuset.memory_nodes;
  if (!options_.owner.empty()) config->make({"labels", kOwnerLabel}) = options_.owner;
  if (pod.sandbox.empty()) return refuse(command, "CreateContainerError", "the pod has no sandbox");
  Json request = Json::object(
      {{"pod_sandbox_id", pod.sandbox}, {"config", *std::move(config)}, {"sandbox_config", pod.sandbox_config}});
  call("CreateContainer", std::move(request), kRuntimeCallMax,
       [this, start = std::move(start), last_words = *last_words](Result<Json> made) mutable {
         if (!made) return refuse_by_runtime(start.command, "CreateContainerError", made.error().message);
         const std::string id(made->string_at({"container_id"}));
         start_created(std::move(start), id, std::move(last_words));
       });
}

void CriRuntime::start_created(Starting start, const std::string& id, std::string termination_log) {
  const std::string& name = start.command.name;
  tell(start.command.uid, name, kNormal, "Created", "Created container: " + name);
  if (!may_start(start)) return;  // the created container is removed with its sandbox
  call("StartContainer", Json::object({{"container_id", id}}), kRuntimeCallMax,
       [this, start = std::move(start), id, last_words = std::move(termination_log)](Result<Json> started) mutable {
         if (!started) return refuse_by_runtime(start.command, "RunContainerError", started.error().message);
         call("ContainerStatus", Json::object({{"container_id", id}}), kRuntimeCallMax,
              [this, start = std::move(start), id, last_words = std::move(last_words)](Result<Json> status) mutable {
                on_running(std::move(start), id, std::move(last_words), status);
              });
       });
}

void CriRuntime::on_running(Starting start, const std::string& id, std::string termination_log,
                            const Result<Json>& status) {
  const agent::StartContainer& command = start.command;
  Pod* pod = find(command.uid);
  if (pod == nullptr) return;
  pod->starting.erase(command.name);
  Container container;
  container.id = id;
  container.attempt = command.attempt;
  container.running = true;
  container.termination_log = std::move(termination_log);
  container.message_from_logs = start.command.message_from_logs;
  const std::int64_t nanos = status ? number_in(*status, {"status", "started_at"}) : 0;
  container.started_at =
      nanos > 0 ? WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(nanos))) : loop_.now().wall;
  if (auto cgroup = open_container(*pod, id)) container.cgroup = *std::move(cgroup);
  if (container.cgroup) container.handle = make_handle(container.cgroup, command.name);
  const WallTime at = container.started_at;
  const auto before = pod->containers.find(command.name);
  if (before != pod->containers.end()) unwatch(before->second);
  pod->containers.insert_or_assign(command.name, std::move(container));
  change_target(*pod);
  log_folders_.link(pod->command.pod, command.name, id, log_in(pod->logs, command.name, command.attempt));
  emit(agent::ContainerStarted{
      .uid = command.uid,
      .name = command.name,
      .attempt = command.attempt,
      .pid = 0,
      .at = at,
      .container_id = fmt::format("{}://{}", options_.runtime_name, id),
      .image_id = status ? std::string(status->string_at({"status", "image_ref"})) : std::string()});
  watch(command.uid, command.name);
  if (pod->stopping) stop_containers(command.uid, Duration{});
}

}  // namespace spillway::host
