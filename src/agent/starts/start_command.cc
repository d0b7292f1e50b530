#include "agent/starts/start_command.h"

#include "agent/containers/dns_config.h"
#include "agent/containers/pod_hosts.h"
#include "agent/containers/pod_resources.h"
#include "agent/pod_state/pod_addresses.h"
#include "agent/starts/pull_secrets.h"
#include "agent/volumes/volume_plan.h"
#include "policy/admission/apparmor.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

using Retry = RefusedStart::Retry;

/// Arguments and environments of a pod's containers that start or run: all are held in memory.
constexpr std::size_t kPodBytesMax = 4 * kExecBytesMax;

constexpr std::string_view kResolverPath = "/etc/resolv.conf";

RefusedStart refused(std::string_view reason, std::string message, Retry retry) {
  return {.why = {std::string(reason), std::move(message)}, .retry = retry};
}

RefusedStart refused_as_too_large(std::string message) {
  return {.why = {"CreateContainerError", std::move(message)}, .retry = Retry::kYes, .too_large = true};
}

std::size_t bytes_of(const std::vector<std::string>& words) {
  std::size_t bytes = 0;
  for (const std::string& word : words) bytes += word.size();
  return bytes;
}

/// Bytes of the containers that start or run, without this one.
std::size_t exec_bytes_beside(const PodWorker& worker, const ContainerRun& run) {
  std::size_t bytes = 0;
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& each : *list) {
      const bool lives = each.state == ContainerRun::State::kStarting || each.state == ContainerRun::State::kRunning;
      if (lives && &each != &run) bytes += each.exec_bytes;
    }
  }
  return bytes;
}

}  // namespace

std::optional<RefusedStart> StartCommand::make() {
  using Step = Refused (StartCommand::*)();
  for (const Step step : {&StartCommand::check_room, &StartCommand::set_environment, &StartCommand::check_app_armor,
                          &StartCommand::set_command, &StartCommand::set_working_dir, &StartCommand::set_security,
                          &StartCommand::set_mounts, &StartCommand::set_rest}) {
    if (Refused why = (this->*step)()) return why;
  }
  return std::nullopt;
}

std::optional<RefusedStart> StartCommand::check_room() {
  if (exec_bytes_beside(worker_, run_) <= kPodBytesMax) return std::nullopt;
  return refused("CreateContainerError",
                 fmt::format("arguments and environments of the pod's other containers exceed {} bytes", kPodBytesMax),
                 Retry::kYes);
}

std::optional<RefusedStart> StartCommand::set_environment() {
  Result<Environment> made =
      environment_of(pod_, container_,
                     {.addresses = addresses_of(worker_, node_.machine),
                      .sources = read_.sources,
                      .files = read_.files,
                      .services = node_.services ? std::optional(node_.services()) : std::nullopt,
                      .allocatable = node_.allocatable});
  if (!made) {
    const ErrorCode code = made.error().code;
    if (code == ErrorCode::kRequestEntityTooLarge) return refused_as_too_large(made.error().text());
    const bool may_appear = code == ErrorCode::kNotFound || code == ErrorCode::kServiceUnavailable;
    return refused("CreateContainerConfigError", made.error().text(), may_appear ? Retry::kYes : Retry::kNo);
  }
  environment_ = *std::move(made);
  start_.env = environment_.variables();
  exec_bytes_ = environment_.written_bytes();
  return std::nullopt;
}

/// An ephemeral container did not exist when the pod was admitted.
std::optional<RefusedStart> StartCommand::check_app_armor() {
  if (!worker_.is_ephemeral(run_)) return std::nullopt;
  const admission::Answer answer = admission::admit_app_armor_of(pod_, container_, node_.machine.app_armor_error);
  if (!answer.refusal) return std::nullopt;
  return refused("CreateContainerConfigError", answer.refusal->message, Retry::kNo);
}

/// For a container runtime container_config() makes the command line, with the variables of the devices.
std::optional<RefusedStart> StartCommand::set_command() {
  const bool runs_images = node_.machine.runs_images;
  Result<std::vector<std::string>> command =
      runs_images ? words_of(container_, environment_) : command_line_of(container_, environment_);
  if (!command && command.error().code == ErrorCode::kRequestEntityTooLarge)
    return refused_as_too_large(command.error().text());
  if (!command) return refused("CreateContainerError", command.error().text(), Retry::kNo);
  exec_bytes_ += bytes_of(*command);
  if (!runs_images) start_.argv = *std::move(command);
  return std::nullopt;
}

std::optional<RefusedStart> StartCommand::set_working_dir() {
  Result<std::string> expanded = node_.machine.runs_images ? Result<std::string>(container_.working_dir)
                                                           : expand(container_.working_dir, environment_, PATH_MAX - 1);
  if (!expanded) return refused("CreateContainerError", "workingDir: File name too long", Retry::kYes);
  start_.working_dir = *std::move(expanded);
  return std::nullopt;
}

std::optional<RefusedStart> StartCommand::set_security() {
  if (node_.machine.runs_images) return std::nullopt;
  if (!node_.machine.confines_pods) {
    if (auto why = refusal_without_confinement(pod_)) return RefusedStart{.why = *std::move(why)};
    return std::nullopt;
  }
  auto wanted = security_of(
      pod_, container_, node_.options.seccomp_default ? SeccompDefault::kRuntimeDefault : SeccompDefault::kUnconfined);
  if (!wanted) return RefusedStart{.why = wanted.error()};
  start_.security = *std::move(wanted);
  return std::nullopt;
}

/// A container runtime may not have reported its features yet: then it is tried again.
std::optional<RefusedStart> StartCommand::set_mounts() {
  const bool runs_images = node_.machine.runs_images;
  if (!node_.machine.confines_pods && !runs_images) return std::nullopt;
  const Outcome mounts = add_mounts();
  if (mounts) return std::nullopt;
  return refused("CreateContainerConfigError", mounts.error().text(), runs_images ? Retry::kYes : Retry::kNo);
}

std::optional<RefusedStart> StartCommand::set_rest() {
  if (node_.machine.runs_images) {
    start_.definition = worker_.pod;
    start_.pull_secrets = pull_secrets_of(pod_, read_.sources);
  }
  start_.message_from_logs = container_.termination_message_policy == "FallbackToLogsOnError";
  start_.uid = worker_.uid();
  start_.standard_input = container_.standard_input;
  start_.input_ends_once = container_.standard_input_once;
  start_.terminal = container_.tty;
  if (worker_.is_ephemeral(run_)) start_.target = container_.target_container_name;
  start_.image = container_.image;
  start_.name = container_.name;
  const ContainerLimits limits = limits_of(pod_.spec, container_);
  start_.memory_limit = limits.memory_limit;
  start_.cpu_limit_milli = limits.cpu_limit_milli;
  start_.cpu_request_milli = limits.cpu_request_milli;
  start_.oom_score_adj = oom_score_adj(pod_, container_, node_.machine.memory);
  return std::nullopt;
}

Outcome StartCommand::add_mounts() {
  std::set<std::string> known;
  std::set<std::string> read_only;
  for (const api::Volume& volume : pod_.spec.volumes) {
    known.insert(volume.name);
    if (is_always_read_only(volume)) read_only.insert(volume.name);
  }
  MountPlan plan = plan_mounts(container_, known, read_only, environment_, recursion());
  if (plan.problem) return *std::move(plan.problem);
  for (PlannedMount& mount : plan.mounts) {
    mount.binding.propagation = mount.propagation;
    if (mount.propagation != Propagation::kNone && !node_.machine.runs_images)
      return invalid({}, "volume \"{}\" at {}: with the process runtime mounts are not propagated",
                     mount.binding.volume, mount.binding.container_path);
    start_.volumes.push_back(std::move(mount.binding));
  }
  if (const std::string& path = container_.termination_message_path; path.starts_with('/'))
    start_.files.push_back({.container_path = path, .content = {}, .is_message = true});
  SPILLWAY_TRY_VOID(add_resolver());
  SPILLWAY_TRY(names, names_of(pod_, node_.options.cluster_domain));
  if (const auto host_name = kernel_host_name(pod_, names); !host_name) return host_name.error();
  if (plan.has_own_hosts) return {};
  const PodAddresses addresses = addresses_of(worker_, node_.machine);
  const std::vector<std::string> ips = addresses.pod_ips.empty() ? std::vector{addresses.pod_ip} : addresses.pod_ips;
  if (auto hosts = hosts_file(pod_, names, ips)) start_.files.push_back(*std::move(hosts));
  return {};
}

/// A runtime that does not report the feature ignores the option: mounts below would be writable.
RecursiveReadOnly StartCommand::recursion() const {
  if (!node_.machine.runs_images) return RecursiveReadOnly::kSupported;
  const auto handler = std::ranges::find(node_.handlers, worker_.handler, &RuntimeHandler::name);
  const bool can = handler != node_.handlers.end() && handler->recursive_read_only_mounts;
  return can ? RecursiveReadOnly::kSupported : RecursiveReadOnly::kUnsupported;
}

/// A container runtime writes the file by itself. Else the machine's own is seen, unless the pod is to have another.
Outcome StartCommand::add_resolver() {
  if (node_.machine.runs_images || !has_own_dns(pod_, node_.options.dns)) return {};
  const bool mounted = std::ranges::any_of(
      start_.volumes, [](const VolumeBinding& each) { return each.container_path == kResolverPath; });
  if (mounted) return {};
  SPILLWAY_TRY(dns, pod_dns(pod_, node_.options.dns));
  start_.files.push_back({.container_path = std::string(kResolverPath), .content = resolv_conf(dns.config)});
  return {};
}

}  // namespace spillway::agent
