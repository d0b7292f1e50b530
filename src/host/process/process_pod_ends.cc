#include "host/process/process_pod_ends.h"

#include "host/cgroup/cgroup_kill.h"
#include "host/pods/pod_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace spillway::host {
namespace {

namespace fs = std::filesystem;

constexpr int kCgroupRemovalTriesMax = 100;

}  // namespace

void ProcessPodEnds::stop(const agent::StopPod& command) {
  ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return host_.events.emit(agent::PodStopped{command.uid});
  pod->stop_asked = true;
  if (command.storage_freed && pod->freeing == ProcessPod::FreeState::kUnasked)
    pod->freeing = ProcessPod::FreeState::kAsked;
  stop_containers(*pod, command.grace);
  advance(command.uid);
}

void ProcessPodEnds::remove(const agent::RemovePod& command) {
  ProcessPod* pod = pods_.find(command.uid);
  if (pod == nullptr) return;
  pod->removing = true;
  pods_.removals().begin(command.uid);
  stop_containers(*pod, Duration::zero());
  advance(command.uid);
}

void ProcessPodEnds::shut_down(Duration grace, std::function<void()> done) {
  pods_.close();
  on_shut_down_ = std::move(done);
  means_.attachments.end();
  for (auto& [uid, pod] : pods_.all()) {
    stop_containers(pod, grace);
    if (!pod.containers.empty()) continue;
    means_.supervisors.release_holder(pod);
    means_.attachments.detach(pod);
  }
  report_shut_down();
}

void ProcessPodEnds::stop_containers(ProcessPod& pod, Duration grace) {
  pod.stopping = true;
  for (const auto& [name, container] : pod.containers) container->stop(grace);
}

/// Containers end first, then storage is freed if that was requested, then the pod's other resources are released and
/// its end is reported; it is removed once its attachment to the network has ended as well.
void ProcessPodEnds::advance(const std::string& uid) {
  ProcessPod& pod = *pods_.find(uid);
  if (!pod.containers.empty()) return;
  if (pod.freeing == ProcessPod::FreeState::kAsked && !pod.removing) return free_storage(uid);
  if (pod.freeing == ProcessPod::FreeState::kRunning && !pod.removing) return;
  if (pod.stopping) {
    means_.supervisors.release_holder(pod);
    release_volumes(pod);
    means_.attachments.detach(pod);
  }
  if (pod.stop_asked) host_.events.emit(agent::PodStopped{uid});
  pod.stop_asked = false;
  if (pod.removing && pod.is_at_rest()) remove_pod(uid);
  if (pods_.is_closing()) report_shut_down();
}

/// Deletes the volumes, then the other files of the containers, then reads the sizes of the disk: an eviction pass
/// after PodStopped must not use an older reading. Logs stay.
void ProcessPodEnds::free_storage(const std::string& uid) {
  ProcessPod& pod = *pods_.find(uid);
  pod.freeing = ProcessPod::FreeState::kRunning;
  const auto measured = alive_.guard([this, uid, identity = pod.identity] {
    ProcessPod* again = pods_.is_made_anew(uid, identity) ? nullptr : pods_.find(uid);
    if (again == nullptr || again->freeing != ProcessPod::FreeState::kRunning) return;
    again->freeing = ProcessPod::FreeState::kDone;
    advance(uid);
  });
  const auto freed =
      alive_.guard([this, measured] { means_.observer.after_disk_reading_since(host_.loop.now().mono, measured); });
  host_.loop.at(host_.loop.now().mono + kFreeMax, measured);  // the end of a pod does not wait for a disk that hangs
  release_volumes(pod, alive_.guard([this, freed, folder = pod.work_folder()] { remove_work_files(folder, freed); }));
}

void ProcessPodEnds::remove_work_files(const std::string& folder, const std::function<void()>& then) {
  const bool queued = means_.files.submit([folder, then]() -> runtime::Loop::Task {
    std::error_code error;
    for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
      std::error_code stays;
      fs::remove_all(each->path(), stays);
    }
    return then;
  });
  if (!queued) then();
}

/// Unmounts the volumes, then deletes their files. `done` may be empty.
void ProcessPodEnds::release_volumes(ProcessPod& pod, std::function<void()> done) {
  if (!pod.volumes) {
    if (done) done();
    return;
  }
  const std::string folder = pod.volume_folder();
  pods_.removals().job_began(pod.command.uid);
  done = alive_.guard([this, uid = pod.command.uid, then = std::move(done)] {
    if (then) then();
    pods_.removals().job_ended(uid);
  });
  const auto remove = alive_.guard([this, folder, done] { remove_volume_files(folder, done); });
  if (means_.volumes.release(std::exchange(pod.volumes, nullptr), remove)) return;
  host_.log.warning("volumes not removed", {{"directory", folder}});
  done();
}

void ProcessPodEnds::remove_volume_files(const std::string& folder, const std::function<void()>& done) {
  const bool removing = means_.files.submit([folder, done]() -> runtime::Loop::Task {
    std::error_code error;
    fs::remove_all(folder, error);
    return done;
  });
  if (removing) return;
  host_.log.warning("volumes not removed", {{"directory", folder}});
  done();
}

void ProcessPodEnds::remove_pod(const std::string& uid) {
  const auto entry = pods_.all().find(uid);
  ProcessPod pod = std::move(entry->second);
  pods_.all().erase(entry);
  pods_.update_class_shares();
  means_.supervisors.release_holder(pod);
  release_volumes(pod);
  means_.maker.release_ids(pod);
  if (pod.cgroup) remove_cgroup(pod.command.qos, "pod" + uid, 0);
  remove_directory(pod);
}

/// The last job of the removal. The end of a mount namespace waits for all processors: namespaces end on the thread of
/// files.
void ProcessPodEnds::remove_directory(ProcessPod& pod) {
  const auto done = alive_.guard([this, uid = pod.command.uid] { pods_.removals().job_ended(uid); });
  if (pod.directory.empty()) return done();
  const auto namespaces = std::make_shared<std::optional<PodNamespaces>>(std::move(pod.isolated.namespaces));
  const bool queued = means_.files.submit([directory = pod.directory, namespaces, done]() -> runtime::Loop::Task {
    namespaces->reset();
    std::error_code error;
    fs::remove_all(directory, error);
    return done;
  });
  if (queued) return;
  host_.log.warning("pod directory not removed", {{"directory", pod.directory}});
  done();
}

/// The kernel may hold a cgroup for a moment after its last process has ended.
void ProcessPodEnds::remove_cgroup(api::QosClass qos, const std::string& name, int tries) {
  const bool is_known = std::ranges::any_of(pods_.all(), [&](const auto& pod) { return "pod" + pod.first == name; });
  if (is_known) return;  // made anew
  const Outcome removed = remove_tree(host_.slice.parent_of(qos), name);
  if (removed) return;
  if (removed.error().code != ErrorCode::kConflict || tries == kCgroupRemovalTriesMax)
    return host_.log.warning("pod cgroup not removed", {{"cgroup", name}, {"error", removed.error().text()}});
  host_.loop.at(host_.loop.now().mono + milliseconds(10),
                alive_.guard([this, qos, name, tries] { remove_cgroup(qos, name, tries + 1); }));
}

void ProcessPodEnds::report_shut_down() {
  const bool idle = std::ranges::all_of(pods_.all(), [](const auto& entry) { return entry.second.is_at_rest(); });
  if (idle && on_shut_down_) host_.loop.post(std::exchange(on_shut_down_, {}));
}

}  // namespace spillway::host
