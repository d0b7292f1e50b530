#include "host/containers/cri_storage.h"

#include <utility>
#include <vector>

namespace spillway::host {
namespace {

constexpr Duration kDiskReadInterval = milliseconds(50);
constexpr Duration kDiskReadMax = seconds(5);
/// Records of a removed container are freed at once and take some kilobytes; its layer is what matters, and takes more.
constexpr Bytes kFreedMin = mebibytes(1);

}  // namespace

CriStorage::CriStorage(const CriHost& host, const CriPods& pods, Observer& observer)
    : host_(host),
      pods_(pods),
      observer_(observer),
      feed_(host.loop,
            {.socket = host.options.socket,
             .node_directory = host.options.state_dir,
             .image_socket = host.options.image_socket},
            host.log, [] {}) {}

/// Without disk figures of the runtime, no pod is evaluated by its disk usage.
void CriStorage::observe(const agent::Observe& command) {
  const bool whole = command.depth == agent::ObserveDepth::kWhole;
  agent::Observed seen{
      command.id, whole ? observe_now() : observer_.observe_node_memory_alone(host_.loop.now()), command.depth, {}};
  const agent::StorageReading* storage = feed_.latest(host_.loop.now().mono);
  if (storage != nullptr) seen.layout = agent::storage_layout(*storage);
  if (seen.summary && !whole) agent::describe_node(seen.summary->node, storage);
  if (seen.summary && storage == nullptr) agent::remove_disk_usage(*seen.summary);
  host_.events.emit(std::move(seen));
}

Result<api::Summary> CriStorage::observe_now() {
  const Now now = host_.loop.now();
  const std::vector<PodView> seen = pods_.views();
  SPILLWAY_TRY(summary, observer_.observe(seen, now));
  const agent::StorageReading* storage = feed_.latest(now.mono);
  agent::describe_node(summary.node, storage);
  if (storage != nullptr) {
    for (api::PodStats& pod : summary.pods) agent::describe_pod(pod, pod.uid, summary.node.fs, *storage);
  }
  feed_.refresh(pods_.folders());
  return summary;
}

agent::ImageFileSystem CriStorage::image_file_system() const {
  const agent::StorageReading* storage = feed_.latest(host_.loop.now().mono);
  api::NodeStats node;
  agent::describe_node(node, storage);
  if (!node.image_fs || !node.image_fs->capacity_bytes || !node.image_fs->available_bytes) return {};
  return {static_cast<std::int64_t>(*node.image_fs->capacity_bytes),
          static_cast<std::int64_t>(*node.image_fs->available_bytes)};
}

void CriStorage::when_disks_read(Instant since, std::function<void()> then, std::optional<std::int64_t> floor) {
  const Instant now = host_.loop.now().mono;
  const agent::StorageReading* storage = feed_.latest(now);
  const bool is_new = storage != nullptr && storage->begun.mono > since;
  const bool is_freed = !floor || image_file_system().available_bytes >= *floor + kFreedMin.count();
  if ((is_new && is_freed) || now - since >= kDiskReadMax) return then();
  feed_.refresh(pods_.folders());
  host_.loop.at(now + kDiskReadInterval, alive_.guard([this, since, floor, then = std::move(then)]() mutable {
    when_disks_read(since, std::move(then), floor);
  }));
}

}  // namespace spillway::host
