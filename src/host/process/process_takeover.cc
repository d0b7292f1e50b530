// ProcessRuntime: takes over the pods of an earlier process of this node, from their records, supervisors and cgroups,
// and reports them as one PodsFound. Writes the records for the next process.
#include "agent/contract/container_end.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/process/process_runtime.h"
#include "host/supervisor/supervisor_program.h"
#include "host/volumes/mount_points.h"
#include "host/volumes/provisioned_directory.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

}  // namespace

/// Only folders made by this runtime have two underscores in their name.
bool ProcessRuntime::is_kept_folder(std::string_view name) {
  return std::ranges::count(name, '_') == 2;
}

Outcome ProcessRuntime::remove_stale_pods() const {
  std::error_code error;
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::directory_iterator(options_.state_dir + "/pods", error))
    if (is_kept_folder(entry.path().filename().string()) && entry.is_directory(error)) stale.push_back(entry.path());
  for (const fs::path& path : stale) {
    fs::remove_all(path, error);
    if (error) return errno_error(path.string(), error.value());
  }
  return {};
}

Outcome ProcessRuntime::look_around() {
  SPILLWAY_TRY(program, open_supervisor_program());
  supervisor_program_ = std::move(program);
  SPILLWAY_TRY(cgroup, slice_.slice().create_child(std::string(kSupervisorsFolder)));
  supervisors_ = std::move(cgroup);
  read_kept_pods();
  UniqueFd volumes = find_supervisors();
  // Cgroups without a record; those that cannot be removed yet are left to the housekeeping.
  OrphanedCgroups unknown(slice_);
  const auto is_known = [this](std::string_view uid) { return pods_.contains(std::string(uid)); };
  for (int look = 0; look < 2; ++look) static_cast<void>(unknown.clear(is_known));
  for (auto& [uid, pod] : pods_) clear_cgroups(pod);
  update_class_shares();
  if (!volumes) {
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) tell_found({});
    });
    return {};
  }
  const bool queued = volumes_.enter(
      std::move(volumes), [this, alive = std::weak_ptr(alive_)](const Result<std::vector<std::string>>& mounts) {
        if (alive.expired()) return;
        if (!mounts) log_.error("volumes in memory are lost", {{"error", mounts.error().text()}});
        tell_found(mounts ? *mounts : std::vector<std::string>());
      });
  return queued ? Outcome() : invalid("volumes", "their thread takes no work");
}

void ProcessRuntime::read_kept_pods() {
  std::error_code error;
  std::vector<std::string> folders;
  for (fs::directory_iterator each(options_.state_dir + "/pods", error), end; !error && each != end;
       each.increment(error))
    if (is_kept_folder(each->path().filename().string())) folders.push_back(each->path().string());
  std::ranges::sort(folders);
  for (const std::string& folder : folders) read_kept_pod(folder);
}

void ProcessRuntime::read_kept_pod(const std::string& directory) {
  const auto text = read_file(fmt::format("{}/{}", directory, kPodRecord));
  auto kept = text ? parse_pod_record(*text) : Result<KeptPod>(text.error());
  if (!kept || pods_.contains(kept->command.uid) || pods_.size() >= options_.pods_max) {
    std::error_code error;
    fs::remove_all(directory, error);  // now: the pod may be made anew at once
    if (error) log_.warning("pod directory not removed", {{"directory", directory}, {"error", error.message()}});
    return;
  }
  PodEntry pod;
  pod.made = false;
  pod.command = std::move(kept->command);
  pod.created = kept->created;
  pod.directory = directory;
  pod.isolated.first_id = kept->first_id;
  pod.capabilities = std::move(kept->capabilities);
  if (const auto ends = read_file(fmt::format("{}/{}", directory, kEndsRecord))) pod.ends = parse_ends(*ends);
  auto cgroup = slice_.parent_of(pod.command.qos).open_child("pod" + pod.command.uid);
  if (cgroup) pod.cgroup = *std::move(cgroup);
  const std::string uid = pod.command.uid;
  pods_.emplace(uid, std::move(pod));
}

/// Returns the mount namespace of the node's volumes, if one of them holds it.
UniqueFd ProcessRuntime::find_supervisors() {
  UniqueFd volumes;
  const auto pids = supervisors_.pids();
  if (!pids) return volumes;
  for (const pid_t pid : *pids) {
    auto found = Supervisor::find(pid);
    if (!found) {
      log_.warning("a supervisor cannot be taken over", {{"error", found.error().text()}});
      if (const UniqueFd process = try_open_pidfd(pid)) static_cast<void>(try_send_signal(process.get(), SIGKILL));
      continue;
    }
    if (!volumes) volumes = found->copy(kVolumesFd);
    static_cast<void>(take_supervisor(*std::move(found)));
  }
  for (auto& [uid, pod] : pods_) {
    if (!pod.made) pod.isolated.first_id.reset();
    if (pod.isolated.first_id) isolator_.keep(*pod.isolated.first_id);
    if (!pod.left.empty()) release_holder(pod);
  }
  return volumes;
}

/// False: the supervisor belongs to no known pod.
bool ProcessRuntime::take_supervisor(Supervisor supervisor) {
  const auto text = supervisor.record();
  auto command = text ? parse_container_record(*text) : Result<agent::StartContainer>(text.error());
  const auto known = supervisor.state();
  const auto found = command ? pods_.find(command->uid) : pods_.end();
  if (!known || found == pods_.end() || !found->second.cgroup) {
    // The processes of the container are killed with their cgroup.
    quit(std::move(supervisor));
    return false;
  }
  PodEntry& pod = found->second;
  take_namespaces(pod, supervisor);
  const auto told = pod.ends.find(command->name);
  if (told != pod.ends.end() && told->second.attempt >= command->attempt) {
    static_cast<void>(supervisor.tell(SupervisorOrder::kCollect));
    release_holder(pod);
    pod.holder = std::move(supervisor);
    return true;
  }
  pod.left.emplace_back(std::move(supervisor), *std::move(command));
  return true;
}

void ProcessRuntime::take_namespaces(PodEntry& pod, const Supervisor& supervisor) {
  if (pod.made) return;
  const agent::PodIsolation& wish = pod.command.isolation;
  if (wish.ipc || wish.network || wish.confined) {
    PodNamespaces::Parts parts{.ipc = supervisor.copy(kIpcFd),
                               .network = supervisor.copy(kNetworkFd),
                               .host_name = supervisor.copy(kHostNameFd),
                               .mounts = supervisor.copy(kMountsFd),
                               .users = supervisor.copy(kUsersFd),
                               .root = supervisor.copy(kRootFd)};
    const bool whole = (!wish.ipc || parts.ipc) && (!wish.network || parts.network) &&
                       (!wish.confined || (parts.mounts && parts.users && parts.root && pod.isolated.first_id));
    if (!whole) return;
    pod.isolated.namespaces = PodNamespaces::adopt(std::move(parts));
  }
  pod.made = true;
}

/// A container cgroup without a supervisor belongs to no running container and is removed.
void ProcessRuntime::clear_cgroups(PodEntry& pod) {
  if (!pod.cgroup) return;
  const auto names = pod.cgroup.children();
  if (!names) return;
  for (const std::string& name : *names) {
    if (std::ranges::any_of(pod.left, [&](const auto& each) { return pod.made && each.second.name == name; })) continue;
    const auto cgroup = pod.cgroup.open_child(name);
    if (cgroup) ignored(kill_all(*cgroup), "the container's next start, or the pod's end, tries again");
    ignored(remove_tree(pod.cgroup, name), "the same");
  }
}

void ProcessRuntime::tell_found(const std::vector<std::string>& mounts) {
  agent::PodsFound event;
  std::uint64_t running = 0;
  std::error_code error;
  const std::string given = options_.state_dir + "/pods/";
  const std::string real = fs::canonical(given, error).string() + "/";
  const std::vector<std::string> below = error ? std::vector<std::string>() : mounts_below(mounts, real, given);
  for (auto& [uid, pod] : pods_) {
    std::ranges::copy_if(below, std::back_inserter(pod.mounts),
                         [&](const std::string& each) { return each.starts_with(pod.directory + "/"); });
    if (pod.made && pod.isolated.first_id) {
      pod.volumes =
          std::make_shared<VolumeSet>(VolumeSetOptions{.directory = fmt::format("{}/{}", pod.directory, kVolumeFolder),
                                                       .first_id = *pod.isolated.first_id,
                                                       .hidden = options_.hidden,
                                                       .provisioned = provisioned_folder(options_.state_dir),
                                                       .kept = true,
                                                       .mounts = std::exchange(pod.mounts, {})});
    }
    agent::FoundPod found{.uid = uid, .has_sandbox = pod.made, .ips = {}, .containers = {}};
    keep_network(pod, found);
    adopt_containers(pod, found);
    running += pod.containers.size();
    event.pods.push_back(std::move(found));
  }
  if (networks_) networks_->remove_leftovers();
  if (!event.pods.empty())
    log_.info("pods of an earlier process found", {{"node", slice_.options().node},
                                                   {"pods", static_cast<std::uint64_t>(event.pods.size())},
                                                   {"running", running}});
  emit(std::move(event));
  if (targets_changed_) targets_changed_();
}

/// A pod whose attachment was not finished, or whose namespaces are gone, has no sandbox: the agent requests one.
void ProcessRuntime::keep_network(PodEntry& pod, agent::FoundPod& found) {
  if (!networks_ || pod.capabilities.is_null() || !pod.made) return;
  auto ips = networks_->keep(pod.command.uid);
  if (!ips) {
    found.has_sandbox = false;
    return;
  }
  pod.network = NetworkState::kAttached;
  found.ips = *std::move(ips);
}

void ProcessRuntime::adopt_containers(PodEntry& pod, agent::FoundPod& found) {
  for (auto& [supervisor, command] : std::exchange(pod.left, {})) {
    const auto state = supervisor.state();
    if (!pod.made || !state || pod.containers.contains(command.name)) {
      quit(std::move(supervisor));
      continue;
    }
    agent::FoundContainer each;
    each.name = command.name;
    each.attempt = command.attempt;
    each.image = command.image;
    each.started_at = WallTime(microseconds(state->started_at_micros));
    const std::string log_path = fmt::format("{}/{}/{}.log", pod.directory, command.name, command.attempt);
    auto container = std::make_unique<ContainerProcess>(
        loop_, log_, static_cast<ContainerProcess::Owner&>(*this),
        ContainerProcess::Start{.command = command,
                                .pod = &pod.cgroup,
                                .namespaces = pod.isolated.namespaces ? &*pod.isolated.namespaces : nullptr,
                                .sysctls = pod.command.isolation.sysctls,
                                .log_path = log_path,
                                .log_limits = options_.logs,
                                .open_files_max = open_files_max_,
                                .first_id = pod.isolated.first_id,
                                .own_pids = !pod.command.isolation.host_pids,
                                .mounts = {},
                                .pids = {}});
    if (const Outcome adopted = container->adopt(std::move(supervisor)); !adopted) {
      log_.error("a container cannot be taken over", {{"container", command.name}, {"error", adopted.error().text()}});
      continue;  // its supervisor is treated as a stray from here on
    }
    pod.containers.emplace(command.name, std::move(container));
    found.containers.push_back(std::move(each));
  }
  for (const auto& [name, end] : pod.ends) found.containers.push_back(end);
  std::ranges::sort(found.containers, [](const agent::FoundContainer& a, const agent::FoundContainer& b) {
    return std::tie(a.name, b.attempt) < std::tie(b.name, a.attempt);
  });
}

/// The end is recorded before the supervisor releases the process: an agent that starts between the two finds it
/// recorded.
void ProcessRuntime::note_end(PodEntry& pod, ContainerProcess& container, const agent::ContainerExited& event) {
  std::optional<Supervisor> supervisor = container.release_supervisor();
  if (!supervisor) return;
  agent::FoundContainer end;
  end.name = event.name;
  end.attempt = event.attempt;
  end.image = container.command().image;
  end.started_at = event.started_at;
  end.ended = agent::terminated_by(event);
  pod.ends.insert_or_assign(event.name, std::move(end));
  const Outcome written = write_record(fmt::format("{}/{}", pod.directory, kEndsRecord), ends_text(pod.ends));
  if (!written) log_.warning("end of a container not written down", {{"error", written.error().text()}});
  static_cast<void>(supervisor->tell(SupervisorOrder::kCollect));
  const bool others = std::ranges::any_of(pod.containers, [&](const auto& each) {
    return each.first != event.name && each.second->supervisor() != nullptr;
  });
  if (pod.stopping || others) return quit(*std::move(supervisor));
  release_holder(pod);
  pod.holder = std::move(supervisor);
}

void ProcessRuntime::release_holder(PodEntry& pod) {
  if (pod.holder) quit(*std::exchange(pod.holder, std::nullopt));
}

void ProcessRuntime::quit(Supervisor supervisor) {
  supervisor.quit(loop_);
}

/// Quits supervisors that are unknown in two checks in a row: they were started while their agent died, or do not
/// answer.
void ProcessRuntime::clear_strays() {
  if (!supervisors_) return;
  std::set<pid_t> known;
  for (const auto& [uid, pod] : pods_) {
    if (pod.holder) known.insert(pod.holder->pid());
    for (const auto& each : pod.left) known.insert(each.first.pid());
    for (const auto& [name, container] : pod.containers)
      if (container->supervisor() != nullptr) known.insert(container->supervisor()->pid());
  }
  std::set<pid_t> unknown;
  for (const pid_t pid : supervisors_.pids().value_or(std::vector<pid_t>())) {
    if (known.contains(pid)) continue;
    unknown.insert(pid);
    if (!strays_.contains(pid)) continue;
    log_.warning("an unknown supervisor is ended", {{"pid", static_cast<std::int64_t>(pid)}});
    if (const UniqueFd process = try_open_pidfd(pid)) static_cast<void>(try_send_signal(process.get(), SIGKILL));
  }
  strays_ = std::move(unknown);
}

bool ProcessRuntime::leave_pods() {
  const bool idle =
      std::ranges::all_of(pods_, [](const auto& pod) { return pod.second.containers.empty() && !pod.second.holder; });
  if (!supervisor_program_ || idle) return false;
  shutting_down_ = true;
  for (auto& [uid, pod] : pods_)
    if (pod.volumes) pod.volumes->keep();
  return true;
}

}  // namespace spillway::host
