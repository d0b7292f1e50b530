#include "agent/companion/foreign_storage.h"

#include "agent/containers/pod_storage.h"

#include <algorithm>
#include <set>
#include <utility>

namespace spillway::agent {
namespace {

/// Ids of the pod's sandboxes whose disk usage counts: the ready ones, or else the newest.
std::set<std::string, std::less<>> counted_sandboxes(const RuntimeReport& report, std::string_view uid) {
  std::set<std::string, std::less<>> ready;
  const RuntimeSandbox* newest = nullptr;
  for (const RuntimeSandbox& sandbox : report.sandboxes) {
    if (sandbox.uid != uid) continue;
    if (sandbox.ready) ready.insert(sandbox.id);
    if (newest == nullptr || std::pair(sandbox.created, sandbox.id) > std::pair(newest->created, newest->id)) {
      newest = &sandbox;
    }
  }
  if (ready.empty() && newest != nullptr) ready.insert(newest->id);
  return ready;
}

/// The part that is used, with the sizes of the whole.
api::FsStats usage_on(const std::optional<api::FsStats>& whole, const std::optional<std::uint64_t>& used_bytes,
                      const std::optional<std::uint64_t>& inodes_used, std::optional<WallTime> at) {
  api::FsStats stats = whole.value_or(api::FsStats{});
  stats.time = at;
  stats.used_bytes = used_bytes;
  stats.inodes_used = inodes_used;
  return stats;
}

std::optional<api::FsStats> layer_stats(const std::optional<LayerUsage>& layer, const StorageReading& reading) {
  if (!layer) return std::nullopt;
  const auto found = reading.file_systems.find(layer->mountpoint);
  const auto sizes = found == reading.file_systems.end() ? std::nullopt : std::optional(found->second.sizes);
  return usage_on(sizes, layer->used_bytes, layer->inodes_used, layer->at);
}

std::optional<std::uint64_t> device_of(const std::optional<LayerUsage>& layer, const StorageReading& reading) {
  if (!layer) return std::nullopt;
  const auto found = reading.file_systems.find(layer->mountpoint);
  return found == reading.file_systems.end() ? std::nullopt : std::optional(found->second.device);
}

std::optional<LayerUsage> layer_of(const RuntimeReport& report, const std::string& container) {
  const auto found = report.writable_layers.find(container);
  return found == report.writable_layers.end() ? std::nullopt : std::optional(found->second);
}

/// Volumes whose usage is summed per file system only: emptyDir on disk, configMap, gitRepo. Others are not listed.
std::vector<api::FsStats> volumes_of(const api::PodStats& pod) {
  std::vector<api::FsStats> volumes;
  for (const api::VolumeStats& volume : pod.volumes) volumes.push_back(volume.fs);
  return volumes;
}

}  // namespace

std::vector<DiskVolume> disk_volumes(const api::Pod& pod) {
  std::vector<DiskVolume> volumes;
  for (const api::Volume& volume : pod.spec.volumes) {
    if (volume.source == "emptyDir" && (!volume.empty_dir || volume.empty_dir->medium.empty())) {
      volumes.push_back({volume.name, "kubernetes.io~empty-dir"});
    } else if (volume.source == "configMap") {
      volumes.push_back({volume.name, "kubernetes.io~configmap"});
    } else if (volume.source == "gitRepo") {
      volumes.push_back({volume.name, "kubernetes.io~git-repo"});
    }
  }
  return volumes;
}

std::map<std::string, const RuntimeContainer*> running_containers(const RuntimeReport& report, std::string_view uid) {
  const auto sandboxes = counted_sandboxes(report, uid);
  std::map<std::string, const RuntimeContainer*> running;
  for (const RuntimeContainer& container : report.containers) {
    if (!container.running || !sandboxes.contains(container.sandbox)) continue;
    const RuntimeContainer*& known = running[container.name];
    if (known == nullptr || std::pair(known->created, known->id) < std::pair(container.created, container.id)) {
      known = &container;
    }
  }
  return running;
}

bool holds_containers(const RuntimeReport& report, std::string_view uid) {
  std::set<std::string, std::less<>> sandboxes;
  for (const RuntimeSandbox& sandbox : report.sandboxes) {
    if (sandbox.uid == uid) sandboxes.insert(sandbox.id);
  }
  return std::ranges::any_of(report.containers, [&](const auto& each) { return sandboxes.contains(each.sandbox); });
}

const RuntimeContainer* find_container(const RuntimeReport& report, std::string_view id) {
  const auto found = std::ranges::find(report.containers, id, &RuntimeContainer::id);
  return found == report.containers.end() ? nullptr : &*found;
}

std::optional<eviction::StorageLayout> storage_layout(const StorageReading& reading) {
  const auto images = device_of(reading.runtime.images, reading);
  if (!images || !reading.node_device) return std::nullopt;
  const auto apart = device_of(reading.runtime.containers_apart, reading);
  if (reading.runtime.containers_apart && !apart) return std::nullopt;
  return eviction::StorageLayout{.dedicated_image_fs = *images != *reading.node_device,
                                 .split_container_fs = apart && *apart != *images};
}

void describe_node(api::NodeStats& node, const StorageReading* reading) {
  node.image_fs.reset();
  node.container_fs.reset();
  if (reading == nullptr) return;
  node.image_fs = layer_stats(reading->runtime.images, *reading);
  const auto& apart = reading->runtime.containers_apart;
  node.container_fs = apart ? layer_stats(apart, *reading) : node.image_fs;
}

void describe_pod(api::PodStats& pod, std::string_view uid, const std::optional<api::FsStats>& node_fs,
                  const StorageReading& reading) {
  const auto files = reading.files.find(std::string(uid));
  const auto running = running_containers(reading.runtime, uid);
  for (const RuntimeSandbox& sandbox : reading.runtime.sandboxes) {
    if (sandbox.uid == uid && (!pod.start_time || sandbox.created > *pod.start_time)) pod.start_time = sandbox.created;
  }
  PodStorage storage{.containers = {}, .ephemeral_volumes = volumes_of(pod), .pod_logs = {}, .etc_hosts = {}};
  for (api::ContainerStats& container : pod.containers) {
    container.rootfs.reset();
    container.logs.reset();
    if (const auto known = running.find(container.name); known != running.end()) {
      container.start_time = known->second->created;
      container.rootfs = layer_stats(layer_of(reading.runtime, known->second->id), reading);
    }
    if (files != reading.files.end()) {
      const auto logs = files->second.logs.find(container.name);
      if (logs != files->second.logs.end()) {
        const api::FsStats& used = logs->second;
        container.logs = usage_on(node_fs, used.used_bytes, used.inodes_used, used.time);
      }
    }
    storage.containers.push_back({container.rootfs, container.logs});
  }
  if (files != reading.files.end()) {
    storage.pod_logs = files->second.pod_logs;
    storage.etc_hosts = files->second.etc_hosts;
  }
  api::FsStats whole = node_fs.value_or(api::FsStats{});
  whole.time.reset();
  pod.ephemeral_storage = pod_ephemeral_storage(whole, storage, StatsSource::kCri);
}

void remove_disk_usage(api::Summary& summary) {
  summary.node.fs.reset();
  summary.node.image_fs.reset();
  summary.node.container_fs.reset();
}

}  // namespace spillway::agent
