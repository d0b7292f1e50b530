#include "host/containers/cri_pod_cgroups.h"

#include "agent/companion/pod_cgroup.h"
#include "host/cgroup/cgroup_kill.h"
#include "host/companion/foreign_runtime.h"
#include "host/kernel/kernel_file.h"
#include "host/kernel/pidfd.h"
#include "host/pods/group_limits.h"
#include "host/pods/pod_limits.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr int kCgroupRemovalsMax = 100;
constexpr Duration kClassLimitsAgain = minutes(1);  // as upstream's updates
constexpr int kLevels = 6;                          // pod, class, kubepods, node, instance, "spillway"

std::vector<fs::path> folders_in(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator each(path, error), end; !error && each != end; each.increment(error)) {
    std::error_code unknown;
    if (each->is_directory(unknown)) found.push_back(each->path());
  }
  return found;
}

/// Version 1: a runtime makes the parents of a container's cgroup in every hierarchy, and does not remove them. Removes
/// `levels` of them, if nothing else is in them.
void remove_in_other_hierarchies(const CgroupDir& parent, const std::string& name, int levels) {
  if (parent.version() != CgroupVersion::kV1) return;
  const std::string own = parent.file_path(Controller::kMemory);  // <mount>/<path>
  const std::string& path = parent.path();
  if (!own.ends_with(path)) return;
  std::error_code error;
  const fs::path mounts = fs::path(own.substr(0, own.size() - path.size())).parent_path();
  for (const fs::path& mount : folders_in(mounts)) {
    const fs::path pod = mount.string() + path + "/" + name;
    if (!fs::exists(pod, error)) continue;
    for (const fs::path& below : folders_in(pod)) fs::remove(below, error);
    fs::path folder = pod;
    for (int level = 0; level < levels && folder != mount; ++level, folder = folder.parent_path())
      if (!fs::remove(folder, error)) break;
  }
}

}  // namespace

Outcome CriPodCgroups::make(CriPod& pod) {
  return host_.options.slices == nullptr ? open(pod) : start_slice(pod);
}

/// The cgroup of a pod, made here unless systemd has made it, with its limits.
Outcome CriPodCgroups::open(CriPod& pod) const {
  const api::QosClass qos = pod.command.qos;
  SPILLWAY_TRY(child, host_.slice.pod_child(qos, pod.command.uid));
  SPILLWAY_TRY(cgroup, host_.slice.parent_of(qos).create_child(child));
  pod.cgroup = std::move(cgroup);
  const Outcome delegated = pod.cgroup.delegate_controllers();
  if (!delegated && host_.options.slices == nullptr) return delegated;  // systemd enables what its units need
  return apply_limits(pod.cgroup, pod_limits(pod.command, host_.options.resources));
}

Outcome CriPodCgroups::start_slice(CriPod& pod) {
  const api::QosClass qos = pod.command.qos;
  SPILLWAY_TRY(unit, host_.slice.pod_unit(qos, pod.command.uid));
  pod.slice_starting = true;
  host_.options.slices->start(
      unit, pod_limits(pod.command, host_.options.resources),
      alive_.guard([this, uid = pod.command.uid, qos](Outcome started) { on_slice(uid, qos, std::move(started)); }));
  return {};
}

void CriPodCgroups::on_slice(const std::string& uid, api::QosClass qos, Outcome started) {
  CriPod* pod = pods_.find(uid);
  if (pod == nullptr) return remove(qos, uid);
  pod->slice_starting = false;
  if (started) started = open(*pod);
  if (!started) {
    pod->broken = started.error();
    host_.log.error("pod not made", {{"pod", pod->command.pod.text()}, {"error", started.error().text()}});
  }
  pods_.change_target(*pod);
  listeners_.on_slice_started(uid);
}

void CriPodCgroups::find(const CriPod& pod, const std::string& name, CriContainer& container) const {
  if (auto cgroup = open_container(pod, container.id)) container.cgroup = *std::move(cgroup);
  if (container.cgroup) container.handle = hold_process(container.cgroup, name);
}

/// With systemd's driver the runtime puts its own name before the container's id.
Result<CgroupDir> CriPodCgroups::open_container(const CriPod& pod, const std::string& id) const {
  if (host_.options.slices == nullptr) return pod.cgroup.open_child(id);
  SPILLWAY_TRY(children, pod.cgroup.children());
  for (const std::string& name : children) {
    const auto container = agent::parse_container_cgroup(name);
    if (container && container->id == id && !container->monitor) return pod.cgroup.open_child(name);
  }
  return make_error(ErrorCode::kNotFound, "{} has no cgroup of container {}", pod.cgroup.path(), id);
}

/// The first process of a container, held; null: there is none.
std::shared_ptr<ContainerHandle> CriPodCgroups::hold_process(const CgroupDir& cgroup, const std::string& name) {
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

Result<std::string> CriPodCgroups::parent_of_sandbox(const CriPod& pod) const {
  SPILLWAY_TRY(child, host_.slice.pod_child(pod.command.qos, pod.command.uid));
  return fmt::format("{}/{}", host_.slice.parent_of(pod.command.qos).path(), child);
}

void CriPodCgroups::remove(api::QosClass qos, const std::string& uid) {
  if (pods_.find(uid) != nullptr) return;  // made anew
  if (host_.options.slices == nullptr) return remove_directory(qos, uid, 0);
  stop_slice(qos, uid);
}

/// The kernel may hold a cgroup for a moment after its last process has ended.
void CriPodCgroups::remove_directory(api::QosClass qos, const std::string& uid, int tries) {
  if (pods_.find(uid) != nullptr) return;  // made anew
  const CgroupDir& parent = host_.slice.parent_of(qos);
  const std::string name = host_.slice.pod_child(qos, uid).value_or(std::string());
  if (name.empty()) return;
  const Outcome removed = remove_tree(parent, name);
  // While pods are being made, their parents stay.
  if (removed) return remove_in_other_hierarchies(parent, name, pods_.is_closing() ? kLevels : 1);
  if (removed.error().code != ErrorCode::kConflict || tries == kCgroupRemovalsMax)
    return host_.log.warning("pod cgroup not removed", {{"cgroup", name}, {"error", removed.error().text()}});
  host_.loop.at(host_.loop.now().mono + milliseconds(10),
                alive_.guard([this, qos, uid, tries] { remove_directory(qos, uid, tries + 1); }));
}

/// Lets systemd remove the slice. Hierarchies of version 1 that it does not manage are left to the removal of cgroups.
void CriPodCgroups::stop_slice(api::QosClass qos, const std::string& uid) {
  const auto unit = host_.slice.pod_unit(qos, uid);
  if (!unit) return;
  ++slices_stopping_;
  host_.options.slices->stop(unit->name, alive_.guard([this, qos, uid, name = unit->name](const Outcome& stopped) {
    --slices_stopping_;
    if (!stopped) host_.log.warning("slice not stopped", {{"slice", name}, {"error", stopped.error().text()}});
    remove_directory(qos, uid, 1);
    listeners_.on_slice_stopped();
  }));
}

void CriPodCgroups::limit_group(const agent::LimitGroup& command) {
  if (command.group != agent::LimitedGroup::kPods) return host_.events.emit(limit_reserved_group(host_.slice, command));
  CgroupLimits limits = group_limits(command);
  limits.swap = swap_above_containers(host_.options.resources);
  Outcome limited = apply_limits(host_.slice.kubepods(), limits);
  const auto unit = host_.slice.class_unit(api::QosClass::kGuaranteed);
  if (!limited || host_.options.slices == nullptr || !unit)
    return host_.events.emit(agent::GroupLimited{command.group, std::move(limited)});
  host_.options.slices->limit(unit->name, limits, alive_.guard([this, group = command.group](Outcome kept) {
    host_.events.emit(agent::GroupLimited{group, std::move(kept)});
  }));
}

void CriPodCgroups::update_class_limits() {
  std::vector<const agent::CreatePod*> commands;
  for (const auto& [uid, pod] : pods_.all()) commands.push_back(&pod.command);
  bool again = false;
  for (const api::QosClass qos : {api::QosClass::kGuaranteed, api::QosClass::kBurstable, api::QosClass::kBestEffort})
    again = limit_class(qos, class_limits(qos, commands, host_.options.resources)) || again;
  if (!again || std::exchange(limits_again_, true)) return;
  host_.loop.at(host_.loop.now().mono + kClassLimitsAgain, alive_.guard([this] {
    limits_again_ = false;
    update_class_limits();
  }));
}

/// Weights and protected memory favour pods, and bound none: the next pod writes them again. True: the class uses more
/// memory than its limit, which is what it uses until then.
bool CriPodCgroups::limit_class(api::QosClass qos, CgroupLimits limits) {
  CgroupLimits& last = class_limits_[qos];
  bool again = spare_used_memory(host_.slice.parent_of(qos), limits);
  if (last == limits) return again;
  const Outcome written = apply_limits(host_.slice.parent_of(qos), limits);
  if (written) last = limits;
  again = again || (!written && limits.memory);
  const auto unit = host_.slice.class_unit(qos);
  if (host_.options.slices == nullptr || !unit) return again;
  host_.options.slices->limit(unit->name, limits, [log = host_.log, name = unit->name](const Outcome& limited) {
    if (!limited) log.warning("class of pods not weighed", {{"slice", name}, {"error", limited.error().text()}});
  });
  return again;
}

std::function<void(const CgroupLimits& limits)> CriPodCgroups::limits_of_slice(const std::string& uid) const {
  const CriPod* known = std::as_const(pods_).find(uid);
  if (known == nullptr || host_.options.slices == nullptr) return {};
  const auto unit = host_.slice.pod_unit(known->command.qos, uid);
  if (!unit) return {};
  return [slices = host_.options.slices, log = host_.log, name = unit->name](const CgroupLimits& limits) {
    slices->limit(name, limits, [log, name](const Outcome& limited) {
      if (!limited) log.warning("limits of a pod not kept", {{"unit", name}, {"error", limited.error().text()}});
    });
  };
}

}  // namespace spillway::host
