// Disk usage of pods in a container runtime, and the removal of images and dead containers when a disk is full.
#include "agent/companion/foreign_storage.h"
#include "agent/cri/image_name.h"
#include "host/disk/dead_containers.h"
#include "host/pods/cri_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::host {
namespace {

constexpr Duration kLookAgain = milliseconds(50);
constexpr Duration kLookMax = seconds(5);
/// Records of a removed container are freed at once and take some kilobytes; its layer is what matters, and takes more.
constexpr Bytes kFreedMin = mebibytes(1);

}  // namespace

std::vector<PodView> CriRuntime::views() const {
  std::vector<PodView> all;
  all.reserve(pods_.size());
  for (const auto& [uid, pod] : pods_) {
    if (pod.broken || pod.removing || !pod.cgroup) continue;
    PodView view{.uid = uid,
                 .pod = pod.command.pod,
                 .cgroup = &pod.cgroup,
                 .work_directory = {},
                 .containers = {},
                 .started = pod.created,
                 .own_network = !pod.command.host_network,
                 .volumes = {}};
    for (const std::string& name : pod.disk_volumes)
      view.volumes.push_back({name, fmt::format("{}/_volumes/kubernetes.io~empty-dir/{}", pod.directory, name)});
    for (const auto& [name, container] : pod.containers)
      if (container.running && container.cgroup)
        view.containers.push_back({name, &container.cgroup, {}, container.started_at});
    all.push_back(std::move(view));
  }
  return all;
}

PodFolder CriRuntime::folder_of(const std::string& uid, const Pod& pod) {
  return {.uid = uid, .logs = pod.logs, .directory = pod.directory + "/_files", .volumes = {}};
}

Result<api::Summary> CriRuntime::observe_now() {
  const Now now = loop_.now();
  const std::vector<PodView> seen = views();
  SPILLWAY_TRY(summary, observer_.observe(seen, now));
  const agent::StorageReading* storage = storage_.latest(now.mono);
  agent::describe_node(summary.node, storage);
  if (storage != nullptr) {
    for (api::PodStats& pod : summary.pods) agent::describe_pod(pod, pod.uid, summary.node.fs, *storage);
  }
  ask_for_storage();
  return summary;
}

void CriRuntime::ask_for_storage() {
  std::vector<PodFolder> folders;
  for (const auto& [uid, pod] : pods_)
    if (!pod.broken && !pod.directory.empty()) folders.push_back(folder_of(uid, pod));
  storage_.refresh(std::move(folders));
}

/// Without disk figures of the runtime, no pod is evaluated by its disk usage.
void CriRuntime::on_command(const agent::Observe& command) {
  const bool whole = command.depth == agent::ObserveDepth::kWhole;
  agent::Observed seen{
      command.id, whole ? observe_now() : observer_.observe_node_memory_alone(loop_.now()), command.depth, {}};
  const agent::StorageReading* storage = storage_.latest(loop_.now().mono);
  if (storage != nullptr) seen.layout = agent::storage_layout(*storage);
  if (seen.summary && !whole) agent::describe_node(seen.summary->node, storage);
  if (seen.summary && storage == nullptr) agent::leave_disks_out(*seen.summary);
  emit(std::move(seen));
}

Result<agent::ImageFileSystem> CriRuntime::image_file_system() const {
  const agent::StorageReading* storage = storage_.latest(loop_.now().mono);
  api::NodeStats node;
  agent::describe_node(node, storage);
  if (!node.image_fs || !node.image_fs->capacity_bytes || !node.image_fs->available_bytes)
    return agent::ImageFileSystem{};
  return agent::ImageFileSystem{static_cast<std::int64_t>(*node.image_fs->capacity_bytes),
                                static_cast<std::int64_t>(*node.image_fs->available_bytes)};
}

/// Compares the repository: the tags that containers want are not distinguished.
bool CriRuntime::is_wanted(const ListedImage& image) const {
  const auto repository_of = [](const std::string& name) {
    const auto parsed = agent::parse_image_name(name);
    return parsed ? parsed->repository : std::string();
  };
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [container, wanted] : pod.starting) {
      if (wanted == image.id) return true;
      const std::string repository = repository_of(wanted);
      if (std::ranges::any_of(image.names, [&](const auto& name) { return repository_of(name) == repository; }))
        return true;
    }
  }
  return false;
}

void CriRuntime::on_command(const agent::ReclaimNode& command) {
  const auto images = image_file_system();
  available_before_ = images && images->capacity_bytes > 0 ? std::optional(images->available_bytes) : std::nullopt;
  reclaim(command.actions, agent::Reclaimed{command.id, {}});
}

/// One action after the other.
void CriRuntime::reclaim(std::vector<eviction::ReclaimAction> actions, agent::Reclaimed done) {
  if (actions.empty()) {
    const bool removed = std::ranges::any_of(done.outcomes, [](const auto& each) { return each.deleted > 0; });
    return once_looked_at(
        loop_.now().mono, [this, done = std::move(done)]() mutable { emit(std::move(done)); },
        removed ? available_before_ : std::nullopt);
  }
  const eviction::ReclaimAction action = actions.front();
  actions.erase(actions.begin());
  if (action == eviction::ReclaimAction::kImages) {
    return image_collector_.reclaim(
        [this, actions = std::move(actions), done = std::move(done)](const ImageCollector::Reclaimed& images) mutable {
          done.outcomes.push_back({.action = eviction::ReclaimAction::kImages,
                                   .deleted = images.images,
                                   .freed = Bytes(images.bytes),
                                   .problem = images.problem});
          reclaim(std::move(actions), std::move(done));
        });
  }
  reclaim_containers(std::move(actions), std::move(done));
}

/// Calls `then` once the disks have been read since, and there is more room for images than `floor`, or that takes too
/// long: a decision by an older reading evicts a pod for nothing. `floor`: containerd frees the layer of a container
/// some time after it has answered that the container is removed; nullopt: nothing is expected.
void CriRuntime::once_looked_at(Instant since, std::function<void()> then, std::optional<std::int64_t> floor) {
  const Instant now = loop_.now().mono;
  const agent::StorageReading* storage = storage_.latest(now);
  const bool is_new = storage != nullptr && storage->begun.mono > since;
  const auto images = image_file_system();
  const bool is_freed = !floor || !images || images->available_bytes >= *floor + kFreedMin.count();
  if ((is_new && is_freed) || now - since >= kLookMax) return then();
  ask_for_storage();
  loop_.at(now + kLookAgain, [this, alive = std::weak_ptr(alive_), since, floor, then = std::move(then)]() mutable {
    if (!alive.expired()) once_looked_at(since, std::move(then), floor);
  });
}

/// Removes containers that have ended, of pods that run as well, then sandboxes that were replaced, then logs without a
/// container. Their writable layers are the space that is freed.
void CriRuntime::reclaim_containers(std::vector<eviction::ReclaimAction> actions, agent::Reclaimed done) {
  std::vector<agent::ContainerRemoval> dead;
  std::vector<std::string> sandboxes;
  for (const auto& [uid, pod] : pods_) {
    if (pod.removing) continue;
    for (const auto& [instance, id] : pod.ended) dead.push_back({.id = id});
    sandboxes.insert(sandboxes.end(), pod.old_sandboxes.begin(), pod.old_sandboxes.end());
  }
  const auto removed = static_cast<std::int64_t>(dead.size());
  const auto delete_logs = [this, removed, actions, done] {
    std::vector<PodLogs> logs;
    for (const auto& [uid, pod] : pods_) {
      if (pod.logs.empty()) continue;
      PodLogs& each = logs.emplace_back(PodLogs{pod.logs, {}, {}});
      for (const auto& [name, container] : pod.containers)
        if (container.running) each.live.insert(log_in(pod.logs, name, container.attempt));
    }
    const bool queued = files_.submit(
        [this, alive = std::weak_ptr(alive_), logs, removed, actions, done]() mutable -> runtime::Loop::Task {
          done.outcomes.push_back(delete_dead_logs(logs));
          done.outcomes.back().deleted = std::max(done.outcomes.back().deleted, removed);
          return [this, alive, actions, done]() mutable {
            if (!alive.expired()) reclaim(std::move(actions), std::move(done));
          };
        });
    if (!queued) log_.warning("too much is being deleted to reclaim anything", {{"node", slice_.options().node}});
  };
  remove_containers(std::move(dead), [this, sandboxes, delete_logs] { remove_idle_sandboxes(sandboxes, delete_logs); });
}

}  // namespace spillway::host
