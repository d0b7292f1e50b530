// The end of containers and pods: observed, requested, or forced; and what is removed then.
#include "host/cgroup/cgroup_kill.h"
#include "host/kernel/kernel_file.h"
#include "host/pods/cri_runtime.h"
#include "host/pods/termination_message.h"

#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;
using api::Json;

/// The time after the grace for which the runtime is waited for.
constexpr Duration kRuntimeSlack = seconds(1);
/// Time for the runtime to report the exit of containers whose processes have gone.
constexpr Duration kLastWords = seconds(1);
constexpr Duration kEndingMax = milliseconds(50);
constexpr Duration kInspectMax = milliseconds(500);
constexpr Duration kRemoveRetry = seconds(10);
constexpr std::int64_t kExited = 2;  // ContainerState
constexpr int kCgroupRemovalsMax = 100;
constexpr int kLevels = 6;  // pod, class, kubepods, node, instance, "spillway"

WallTime time_of(std::int64_t nanos) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(nanoseconds(nanos)));
}

std::int64_t whole_seconds(Duration grace) {
  return std::chrono::ceil<std::chrono::seconds>(grace).count();
}

Json sandbox_request(const std::string& id) {
  return Json::object({{"pod_sandbox_id", id}});
}

bool is_gone(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

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

void CriRuntime::watch(const std::string& uid, const std::string& name) {
  Container& container = find(uid)->containers.at(name);
  if (!container.handle) return inspect(uid, name, kInspectFirst);
  loop_.watch_fd(container.handle->pidfd.get(), POLLIN, [this, uid, name] {
    Pod* pod = find(uid);
    if (pod == nullptr) return;
    Container& ended = pod->containers.at(name);
    loop_.unwatch_fd(ended.handle->pidfd.get());
    ended.handle->running = false;
    inspect(uid, name, kInspectFirst);
  });
}

void CriRuntime::unwatch(Container& container) {
  if (container.handle) loop_.unwatch_fd(container.handle->pidfd.get());
}

/// Queries the runtime until it has seen the end as well; after the bound, lists continue with containers that are not
/// seen ended.
void CriRuntime::inspect(const std::string& uid, const std::string& name, Duration wait) {
  Pod* pod = find(uid);
  if (pod == nullptr || !pod->containers.contains(name)) return;
  Container& container = pod->containers.at(name);
  if (!container.running || container.inspecting) return;
  container.inspecting = true;
  call("ContainerStatus", Json::object({{"container_id", container.id}}), kRuntimeCallMax,
       [this, uid, name, id = container.id, wait](Result<Json> answer) {
         Pod* again = find(uid);
         if (again == nullptr || !again->containers.contains(name)) return;
         Container& same = again->containers.at(name);
         if (same.id != id) return;
         same.inspecting = false;
         const Json* status = answer ? answer->find("status") : nullptr;
         if (status != nullptr && number_in(*status, {"state"}) >= kExited) return on_ended(uid, name, *status);
         if (!answer && is_gone(answer.error())) return on_ended(uid, name, Json::object());
         if (!answer) records_.on_inspected(uid, false);
         if (wait > kInspectMax) return;
         loop_.at(loop_.now().mono + wait, [this, alive = std::weak_ptr(alive_), uid, name, wait] {
           if (!alive.expired()) inspect(uid, name, wait * 2);
         });
       });
}

/// The last bytes of the termination message, after those that the runtime reports.
std::string CriRuntime::termination_message(const Pod& pod, const std::string& name, const Json& status) const {
  const Container& container = pod.containers.at(name);
  return read_termination_message({.message_file = container.termination_log,
                                   .log = log_in(pod.logs, name, container.attempt),
                                   .from_logs = container.message_from_logs,
                                   .exit_code = static_cast<std::int32_t>(number_in(status, {"exit_code"})),
                                   .reason = std::string(status.string_at({"reason"})),
                                   .message = std::string(status.string_at({"message"}))});
}

void CriRuntime::on_ended(const std::string& uid, const std::string& name, const Json& status) {
  Pod& pod = *find(uid);
  Container& container = pod.containers.at(name);
  unwatch(container);
  const bool lost = status.find("finished_at") == nullptr;
  agent::ContainerExited event{.uid = uid,
                               .name = name,
                               .attempt = container.attempt,
                               .exit_code = static_cast<std::int32_t>(number_in(status, {"exit_code"})),
                               .signal = 0,
                               .oom_killed = status.string_at({"reason"}) == "OOMKilled",
                               .started_at = container.started_at,
                               .finished_at = lost ? loop_.now().wall : time_of(number_in(status, {"finished_at"})),
                               .container_id = fmt::format("{}://{}", options_.runtime_name, container.id),
                               .reason = std::string(status.string_at({"reason"})),
                               .message = termination_message(pod, name, status)};
  if (lost) {
    event.exit_code = 137;
    event.reason = "ContainerStatusUnknown";
    event.message = "The container could not be located when the pod was terminated";
  }
  pod.ended[{name, container.attempt}] = container.id;
  pod.containers.erase(name);
  change_target(pod);
  pod.told_late.push_back(std::move(event));
  if (pod.ending || pod.stopping || pod.sandbox.empty()) {
    tell_ends(pod);
    if (pod.ending) pursue(uid);
    return;
  }
  // Containers that ended with their sandbox must not restart in it: the loss of the sandbox is reported first.
  call("PodSandboxStatus", sandbox_request(pod.sandbox), kSandboxDoubtMax,
       [this, uid, id = pod.sandbox](Result<Json> found) {
         on_doubted(uid, id, found);
         if (Pod* again = this->find(uid)) tell_ends(*again);
       });
}

void CriRuntime::tell_ends(Pod& pod) {
  for (agent::ContainerExited& each : std::exchange(pod.told_late, {})) emit(std::move(each));
}

void CriRuntime::on_command(const agent::StopContainer& command) {
  Pod* pod = find(command.uid);
  if (pod == nullptr || !pod->containers.contains(command.name)) return;
  const Container& container = pod->containers.at(command.name);
  const Json request = Json::object({{"container_id", container.id}, {"timeout", whole_seconds(command.grace)}});
  call("StopContainer", request, command.grace + kRuntimeCallMax,
       [this, uid = command.uid, name = command.name](Result<Json>) { inspect(uid, name, kInspectFirst); });
  // A runtime that does nothing is not waited for.
  loop_.at(loop_.now().mono + command.grace + kRuntimeSlack,
           [this, alive = std::weak_ptr(alive_), uid = command.uid, name = command.name, id = container.id] {
             Pod* again = alive.expired() ? nullptr : find(uid);
             if (again == nullptr || !again->containers.contains(name)) return;
             const Container& same = again->containers.at(name);
             if (same.id != id || !same.running || !same.cgroup) return;
             const Outcome killed = kill_all(same.cgroup);
             log_.warning("the container runtime did not stop a container: its cgroup is killed",
                          {{"pod", again->command.pod.text()},
                           {"container", name},
                           {"error", killed ? std::string() : killed.error().text()}});
           });
}

void CriRuntime::stop_containers(const std::string& uid, Duration grace) {
  for (const auto& [name, container] : find(uid)->containers) {
    if (!container.running) continue;
    const Json request = Json::object({{"container_id", container.id}, {"timeout", whole_seconds(grace)}});
    call("StopContainer", request, grace + kRuntimeCallMax,
         [this, uid, which = name](Result<Json>) { inspect(uid, which, kInspectFirst); });
  }
}

void CriRuntime::on_command(const agent::StopPod& command) {
  Pod* pod = find(command.uid);
  if (pod == nullptr) return emit(agent::PodStopped{command.uid});
  pod->frees_storage = pod->frees_storage || command.storage_freed;
  end_pod(command.uid, command.grace);
}

void CriRuntime::end_pod(const std::string& uid, Duration grace) {
  Pod& pod = *find(uid);
  pod.stopping = true;
  tell_ends(pod);
  const Instant due = loop_.now().mono + grace + (grace == Duration{} ? Duration{} : kRuntimeSlack);
  if (pod.ending) {
    loop_.cancel(pod.ending->timer);
    if (pod.ending->due <= due) return pursue(uid);
    pod.ending->due = due;
  } else {
    pod.ending = Ending{.due = due};
  }
  pod.ending->at_once = grace == Duration{};
  if (pod.broken || !pod.cgroup) return finish_ending(uid);
  stop_containers(uid, grace);
  pursue(uid);
}

/// Kills until no process of the pod is left; its sandbox is removed last.
void CriRuntime::pursue(const std::string& uid) {
  Pod* pod = find(uid);
  if (pod == nullptr || !pod->ending) return;
  Ending& ending = *pod->ending;
  loop_.cancel(ending.timer);
  const Instant now = loop_.now().mono;
  if (pod->containers.empty() && !pod->sandbox.empty()) stop_sandbox(uid);
  const Result<bool> is_now_empty = is_empty(pod->cgroup);
  const bool empty = is_now_empty && *is_now_empty;
  if (!empty && now >= ending.due) {
    const Outcome killed = kill_all(pod->cgroup);
    if (!std::exchange(ending.killed, true) && !ending.at_once && !pod->containers.empty()) {
      log_.warning("a pod's cgroup is killed: its time is over",
                   {{"pod", pod->command.pod.text()}, {"error", killed ? std::string() : killed.error().text()}});
      tell(uid, {}, agent::PodNotice::Weight::kWarning, "PodCgroupKilled",
           "The container runtime did not end the pod in time: its cgroup was killed");
    }
  }
  if (empty && !ending.empty) ending.empty = now;
  if (!empty) ending.empty.reset();
  const bool told = pod->containers.empty() || (ending.empty && now - *ending.empty >= kLastWords);
  if (empty && told) return finish_ending(uid);
  ending.timer = loop_.at(now + ending.wait, [this, alive = std::weak_ptr(alive_), uid] {
    if (!alive.expired()) pursue(uid);
  });
  ending.wait = std::min<Duration>(ending.wait * 2, kEndingMax);
}

void CriRuntime::stop_sandbox(const std::string& uid) {
  Pod& pod = *find(uid);
  if (pod.ending && std::exchange(pod.ending->sandbox_stopping, true)) return;
  call("StopPodSandbox", sandbox_request(pod.sandbox), kRuntimeCallMax, [this, uid](Result<Json>) {
    if (find(uid) != nullptr) pursue(uid);
  });
}

void CriRuntime::finish_ending(const std::string& uid) {
  Pod& pod = *find(uid);
  loop_.cancel(pod.ending->timer);
  pod.ending.reset();
  for (auto& [name, container] : pod.containers) {
    unwatch(container);
    pod.ended[{name, container.attempt}] = container.id;
  }
  pod.containers.clear();
  change_target(pod);
  if (pod.frees_storage && !pod.removing) return free_storage(uid);
  emit(agent::PodStopped{uid});
  if (pod.removing) remove_from_runtime(uid);
}

/// Removes the containers' writable layers and the volumes; then, or after a while, reads the disks and reports that
/// the pod has stopped.
void CriRuntime::free_storage(const std::string& uid) {
  Pod& pod = *find(uid);
  const auto left = std::make_shared<std::size_t>(pod.ended.size() + 2);
  const auto tell = [this, uid, left, alive = std::weak_ptr(alive_)](std::size_t done) {
    if (alive.expired() || *left == 0) return;
    *left = done < *left ? *left - done : 0;
    if (*left == 0) once_looked_at(loop_.now().mono, [this, uid] { emit(agent::PodStopped{uid}); });
  };
  loop_.at(loop_.now().mono + kFreeMax, [tell, left] { tell(*left); });
  for (const auto& [instance, id] : pod.ended)
    call("RemoveContainer", Json::object({{"container_id", id}}), kRuntimeCallMax, [tell](Result<Json>) { tell(1); });
  const auto remove = [this, alive = std::weak_ptr(alive_), tell, folder = pod.directory + "/_volumes"] {
    const bool queued = !alive.expired() && files_.submit([folder, tell]() -> runtime::Loop::Task {
      std::error_code error;
      fs::remove_all(folder, error);
      return [tell] { tell(1); };
    });
    if (!queued) tell(1);
  };
  const bool queued = pod.volumes && volumes_.release(std::exchange(pod.volumes, nullptr), remove);
  if (!queued) remove();
  tell(1);
}

void CriRuntime::on_command(const agent::RemovePod& command) {
  Pod* pod = find(command.uid);
  if (pod == nullptr || std::exchange(pod->removing, true)) return;
  if (pod->ending) return;
  if (!pod->stopping || !pod->containers.empty()) return end_pod(command.uid, Duration::zero());
  remove_from_runtime(command.uid);
}

/// The runtime removes what is in a sandbox with it.
void CriRuntime::remove_from_runtime(const std::string& uid) {
  Pod& pod = *find(uid);
  std::vector<std::string> left(pod.old_sandboxes.begin(), pod.old_sandboxes.end());
  if (!pod.sandbox.empty()) left.push_back(pod.sandbox);
  remove_sandboxes(uid, std::move(left));
}

void CriRuntime::remove_sandboxes(const std::string& uid, std::vector<std::string> left) {
  if (find(uid) == nullptr) return;
  if (left.empty()) return forget(uid);
  const std::string id = left.back();
  const auto again = [this, uid, left](const Error& error) {
    log_.warning("sandbox not removed", {{"pod_uid", uid}, {"error", error.text()}});
    if (shutting_down_) return forget(uid);
    loop_.at(loop_.now().mono + kRemoveRetry, [this, alive = std::weak_ptr(alive_), uid, left] {
      if (!alive.expired()) remove_sandboxes(uid, left);
    });
  };
  const Duration deadline = shutting_down_ ? Duration(seconds(10)) : Duration(kRuntimeCallMax);
  call("StopPodSandbox", sandbox_request(id), deadline, [this, uid, id, left, again, deadline](Result<Json> stopped) {
    if (!stopped && !is_gone(stopped.error())) return again(stopped.error());
    call("RemovePodSandbox", sandbox_request(id), deadline, [this, uid, left, again](Result<Json> removed) mutable {
      if (!removed && !is_gone(removed.error())) return again(removed.error());
      left.pop_back();
      remove_sandboxes(uid, std::move(left));
    });
  });
}

void CriRuntime::forget(const std::string& uid) {
  const auto entry = pods_.find(uid);
  Pod pod = std::move(entry->second);
  pods_.erase(entry);
  update_class_limits();
  for (const auto& [name, container] : pod.containers) log_folders_.unlink(pod.command.pod, name, container.id);
  for (const auto& [instance, id] : pod.ended) log_folders_.unlink(pod.command.pod, instance.first, id);
  const auto leave = [this, alive = std::weak_ptr(alive_), directory = pod.directory, logs = pod.logs] {
    if (alive.expired() || directory.empty()) return;
    const bool queued = files_.submit([directory, logs]() -> runtime::Loop::Task {
      std::error_code error;
      fs::remove_all(logs, error);  // before the directory, by which it is found again
      fs::remove_all(directory, error);
      return {};
    });
    if (!queued) log_.warning("pod directory not removed", {{"directory", directory}});
  };
  const bool queued = pod.volumes && volumes_.release(std::move(pod.volumes), leave);
  if (!queued) leave();
  if (pod.cgroup) remove_cgroup(pod.command.qos, uid, 0);
  if (shutting_down_) report_shut_down();
}

/// The kernel may hold a cgroup for a moment after its last process has ended.
void CriRuntime::remove_cgroup(api::QosClass qos, const std::string& uid, int tries) {
  if (pods_.contains(uid)) return;  // made anew
  if (options_.slices != nullptr && tries == 0) return stop_slice(qos, uid);
  const CgroupDir& parent = slice_.parent_of(qos);
  const std::string name = slice_.pod_child(qos, uid).value_or(std::string());
  if (name.empty()) return;
  const Outcome removed = remove_tree(parent, name);
  // While pods are being made, their parents stay.
  if (removed) return remove_in_other_hierarchies(parent, name, shutting_down_ ? kLevels : 1);
  if (removed.error().code != ErrorCode::kConflict || tries == kCgroupRemovalsMax)
    return log_.warning("pod cgroup not removed", {{"cgroup", name}, {"error", removed.error().text()}});
  loop_.at(loop_.now().mono + milliseconds(10), [this, alive = std::weak_ptr(alive_), qos, uid, tries] {
    if (!alive.expired()) remove_cgroup(qos, uid, tries + 1);
  });
}

/// Lets systemd remove the slice. Hierarchies of version 1 that it does not manage are left to the removal of cgroups.
void CriRuntime::stop_slice(api::QosClass qos, const std::string& uid) {
  const auto unit = slice_.pod_unit(qos, uid);
  if (!unit) return;
  ++slices_stopping_;
  options_.slices->stop(unit->name,
                        [this, alive = std::weak_ptr(alive_), qos, uid, name = unit->name](const Outcome& stopped) {
                          if (alive.expired()) return;
                          --slices_stopping_;
                          if (!stopped)
                            log_.warning("slice not stopped", {{"slice", name}, {"error", stopped.error().text()}});
                          remove_cgroup(qos, uid, 1);
                          if (shutting_down_) report_shut_down();
                        });
}

}  // namespace spillway::host
