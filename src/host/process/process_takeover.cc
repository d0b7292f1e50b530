#include "host/process/process_takeover.h"

#include "base/file.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/process/kept_records.h"
#include "host/process/orphaned_cgroups.h"
#include "host/volumes/mount_points.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <tuple>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

}  // namespace

Outcome ProcessTakeover::remove_all() {
  for (const std::string& path : pod_directories()) {
    std::error_code error;
    if (!fs::is_directory(path, error)) continue;
    fs::remove_all(path, error);
    if (error) return errno_error(path, error.value());
  }
  means_.attachments.remove_leftovers();
  return {};
}

Outcome ProcessTakeover::begin() {
  for (const std::string& directory : pod_directories()) read_pod(directory);
  UniqueFd volumes = find_supervisors();
  clear_cgroups();
  pods_.update_class_shares();
  if (!volumes) {
    host_.loop.post(alive_.guard([this] { report({}); }));
    return {};
  }
  const bool queued = means_.volumes.enter(
      std::move(volumes), alive_.guard([this](const Result<std::vector<std::string>>& mounts) { on_mounts(mounts); }));
  return queued ? Outcome() : invalid("volumes", "their thread takes no work");
}

/// The mount points in the namespace of the node's volumes.
void ProcessTakeover::on_mounts(const Result<std::vector<std::string>>& mounts) {
  if (!mounts) host_.log.error("volumes in memory are lost", {{"error", mounts.error().text()}});
  report(mounts ? *mounts : std::vector<std::string>());
}

/// Only folders made by this runtime have two underscores in their name.
std::vector<std::string> ProcessTakeover::pod_directories() const {
  std::error_code error;
  std::vector<std::string> folders;
  for (fs::directory_iterator each(host_.options.state_dir + "/pods", error), end; !error && each != end;
       each.increment(error))
    if (std::ranges::count(each->path().filename().string(), '_') == 2) folders.push_back(each->path().string());
  std::ranges::sort(folders);
  return folders;
}

void ProcessTakeover::read_pod(const std::string& directory) {
  ProcessPod pod;
  pod.directory = directory;
  const auto text = read_file(pod.record_path());
  auto kept = text ? parse_pod_record(*text) : Result<KeptPod>(text.error());
  if (!kept || pods_.find(kept->command.uid) != nullptr || pods_.all().size() >= host_.options.pods_max) {
    std::error_code error;
    fs::remove_all(directory, error);  // now: the pod may be made anew at once
    if (error) host_.log.warning("pod directory not removed", {{"directory", directory}, {"error", error.message()}});
    return;
  }
  pod.made = false;
  pod.command = std::move(kept->command);
  pod.created = kept->created;
  pod.isolated.first_id = kept->first_id;
  pod.capabilities = std::move(kept->capabilities);
  if (const auto ends = read_file(pod.ends_path())) pod.ends = parse_ends(*ends);
  auto cgroup = host_.slice.parent_of(pod.command.qos).open_child("pod" + pod.command.uid);
  if (cgroup) pod.cgroup = *std::move(cgroup);
  const std::string uid = pod.command.uid;
  pods_.all().emplace(uid, std::move(pod));
}

UniqueFd ProcessTakeover::find_supervisors() {
  UniqueFd volumes;
  for (const pid_t pid : means_.supervisors.pids()) {
    auto found = Supervisor::find(pid);
    if (!found) {
      host_.log.warning("a supervisor cannot be taken over", {{"error", found.error().text()}});
      if (const UniqueFd process = try_open_pidfd(pid)) static_cast<void>(try_send_signal(process.get(), SIGKILL));
      continue;
    }
    if (!volumes) volumes = found->copy(kVolumesFd);
    take_supervisor(*std::move(found));
  }
  for (auto& [uid, pod] : pods_.all()) {
    if (!pod.made) pod.isolated.first_id.reset();
    means_.maker.keep_ids(pod);
    if (!pod.left.empty()) means_.supervisors.release_holder(pod);
  }
  return volumes;
}

/// A supervisor that belongs to no known pod ends; the processes of its container are killed with their cgroup.
void ProcessTakeover::take_supervisor(Supervisor supervisor) {
  const auto text = supervisor.record();
  auto command = text ? parse_container_record(*text) : Result<agent::StartContainer>(text.error());
  const auto known = supervisor.state();
  ProcessPod* pod = command ? pods_.find(command->uid) : nullptr;
  if (!known || pod == nullptr || !pod->cgroup) return means_.supervisors.quit(std::move(supervisor));
  take_namespaces(*pod, supervisor);
  const auto ended = pod->ends.find(command->name);
  if (ended == pod->ends.end() || ended->second.attempt < command->attempt) {
    pod->left.emplace_back(std::move(supervisor), *std::move(command));
    return;
  }
  static_cast<void>(supervisor.send_order(SupervisorOrder::kCollect));
  means_.supervisors.hold(*pod, std::move(supervisor));
}

void ProcessTakeover::take_namespaces(ProcessPod& pod, const Supervisor& supervisor) {
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

void ProcessTakeover::clear_cgroups() {
  // Cgroups without a record; those that cannot be removed yet are left to the housekeeping.
  OrphanedCgroups unknown(host_.slice);
  const auto is_known = [this](std::string_view uid) { return pods_.all().contains(std::string(uid)); };
  for (int round = 0; round < 2; ++round) static_cast<void>(unknown.clear(is_known));
  for (const auto& [uid, pod] : pods_.all()) clear_cgroups(pod);
}

/// A container cgroup without a supervisor belongs to no running container and is removed.
void ProcessTakeover::clear_cgroups(const ProcessPod& pod) {
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

void ProcessTakeover::report(const std::vector<std::string>& mounts) {
  agent::PodsFound event;
  std::uint64_t running = 0;
  const std::vector<std::string> below = mounts_of_pods(mounts);
  for (auto& [uid, pod] : pods_.all()) {
    std::ranges::copy_if(below, std::back_inserter(pod.mounts),
                         [&](const std::string& each) { return each.starts_with(pod.directory + "/"); });
    if (pod.made) means_.maker.make_volumes(pod);
    agent::FoundPod found{.uid = uid, .has_sandbox = pod.made, .ips = {}, .containers = {}};
    means_.attachments.keep(pod, found);
    adopt_containers(pod, found);
    running += pod.containers.size();
    event.pods.push_back(std::move(found));
  }
  means_.attachments.remove_leftovers();
  if (!event.pods.empty())
    host_.log.info("pods of an earlier process found", {{"node", host_.slice.options().node},
                                                        {"pods", static_cast<std::uint64_t>(event.pods.size())},
                                                        {"running", running}});
  host_.events.emit(std::move(event));
  host_.events.change_targets();
}

std::vector<std::string> ProcessTakeover::mounts_of_pods(const std::vector<std::string>& mounts) const {
  std::error_code error;
  const std::string given = host_.options.state_dir + "/pods/";
  const std::string real = fs::canonical(given, error).string() + "/";
  return error ? std::vector<std::string>() : mounts_below(mounts, real, given);
}

void ProcessTakeover::adopt_containers(ProcessPod& pod, agent::FoundPod& found) {
  for (auto& [supervisor, command] : std::exchange(pod.left, {})) {
    const auto state = supervisor.state();
    if (!pod.made || !state || pod.containers.contains(command.name)) {
      means_.supervisors.quit(std::move(supervisor));
      continue;
    }
    agent::FoundContainer each;
    each.name = command.name;
    each.attempt = command.attempt;
    each.image = command.image;
    each.started_at = WallTime(microseconds(state->started_at_micros));
    if (const Outcome adopted = means_.containers.adopt(pod, std::move(supervisor), command); !adopted) {
      host_.log.error("a container cannot be taken over",
                      {{"container", command.name}, {"error", adopted.error().text()}});
      continue;  // its supervisor is treated as a stray from here on
    }
    found.containers.push_back(std::move(each));
  }
  for (const auto& [name, end] : pod.ends) found.containers.push_back(end);
  std::ranges::sort(found.containers, [](const agent::FoundContainer& a, const agent::FoundContainer& b) {
    return std::tie(a.name, b.attempt) < std::tie(b.name, a.attempt);
  });
}

}  // namespace spillway::host
