#include "agent/containers/pod_storage.h"

#include <algorithm>
#include <cstdint>

namespace spillway::agent {
namespace {

void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  if (part) sum = sum.value_or(0) + *part;
}

enum class Inodes { kCounted, kLeftOut };

void add(api::FsStats& sum, const api::FsStats& part, Inodes inodes) {
  sum.time = std::max(sum.time, part.time);
  add(sum.used_bytes, part.used_bytes);
  if (inodes == Inodes::kCounted) add(sum.inodes_used, part.inodes_used);
}

}  // namespace

api::FsStats pod_ephemeral_storage(const api::FsStats& node_fs, const PodStorage& storage, StatsSource source) {
  api::FsStats sum = node_fs;
  sum.used_bytes.reset();
  sum.inodes_used.reset();
  for (const ContainerStorage& container : storage.containers) {
    if (!container.rootfs) continue;
    add(sum, *container.rootfs, Inodes::kCounted);
    if (container.logs) add(sum, *container.logs, source == StatsSource::kCri ? Inodes::kCounted : Inodes::kLeftOut);
  }
  for (const api::FsStats& volume : storage.ephemeral_volumes) add(sum, volume, Inodes::kCounted);
  if (storage.pod_logs) add(sum, *storage.pod_logs, Inodes::kCounted);
  if (storage.etc_hosts) add(sum, *storage.etc_hosts, Inodes::kCounted);
  return sum;
}

}  // namespace spillway::agent
