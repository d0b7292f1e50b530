// Disk usage of pods in the process runtime, and the removal of files when the disk is full or a pod has ended.
#include "host/disk/dead_containers.h"
#include "host/process/process_runtime.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace spillway::host {

namespace fs = std::filesystem;

/// Unmounts the volumes, then deletes their files. No caller waits for it.
void ProcessRuntime::release_volumes(PodEntry& pod, std::function<void()> done) {
  if (!pod.volumes) {
    if (done) done();
    return;
  }
  const std::string folder = fmt::format("{}/{}", pod.directory, kVolumeFolder);
  const auto remove = [this, alive = std::weak_ptr(alive_), folder, done] {
    if (alive.expired()) return;
    const bool removing = files_.submit([folder, done]() -> runtime::Loop::Task {
      std::error_code error;
      fs::remove_all(folder, error);
      if (!done) return {};
      return done;
    });
    if (removing) return;
    log_.warning("volumes not removed", {{"directory", folder}});
    if (done) done();
  };
  if (volumes_.release(std::exchange(pod.volumes, nullptr), remove)) return;
  log_.warning("volumes not removed", {{"directory", folder}});
  if (done) done();
}

/// Deletes the volumes, then the other files of the containers, then reads the sizes of the disk: an eviction pass
/// after PodStopped must not use an older reading. Logs stay.
void ProcessRuntime::free_storage(const std::string& uid) {
  PodEntry& pod = pods_.at(uid);
  pod.freeing = FreeState::kRunning;
  const auto measured = [this, alive = std::weak_ptr(alive_), uid] {
    if (alive.expired()) return;
    const auto again = pods_.find(uid);
    if (again == pods_.end() || again->second.freeing != FreeState::kRunning) return;
    again->second.freeing = FreeState::kDone;
    settle(uid);
  };
  const auto freed = [this, alive = std::weak_ptr(alive_), measured] {
    if (!alive.expired()) observer_.after_disk_reading_since(loop_.now().mono, measured);
  };
  loop_.at(loop_.now().mono + kFreeMax, measured);  // the end of a pod does not wait for a disk that hangs
  release_volumes(
      pod, [this, alive = std::weak_ptr(alive_), freed, work = fmt::format("{}/{}", pod.directory, kWorkFolder)] {
        if (alive.expired()) return;
        const bool queued = files_.submit([work, freed]() -> runtime::Loop::Task {
          std::error_code error;
          for (fs::directory_iterator each(work, error), end; !error && each != end; each.increment(error)) {
            std::error_code stays;
            fs::remove_all(each->path(), stays);
          }
          return freed;
        });
        if (!queued) freed();
      });
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
      if (alive.expired()) return;
      const auto measured = [this, alive, done = std::move(done)]() mutable {
        if (!alive.expired()) receiver_.on_host_event(std::move(done));
      };
      observer_.after_disk_reading_since(loop_.now().mono, measured);
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
    if (pod.broken || !pod.cgroup) continue;
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

}  // namespace spillway::host
