#include "policy/eviction/ranking.h"

#include "api/object/pod_requests.h"

#include <algorithm>
#include <array>

namespace spillway::eviction {
namespace {

constexpr std::string_view kMemory = "memory";
constexpr std::string_view kEphemeralStorage = "ephemeral-storage";
constexpr std::string_view kInodes = "inodes";

api::Quantity amount(const std::optional<std::uint64_t>& measured, api::Quantity::Format format) {
  return api::Quantity::of_units(measured ? static_cast<std::int64_t>(*measured) : 0, format);
}

/// Volumes whose content is on the node's own filesystem.
bool is_local(const api::Volume& volume) {
  if (volume.source == "emptyDir") return !volume.empty_dir || volume.empty_dir->medium.empty();
  return volume.source == "hostPath" || volume.source == "gitRepo" || volume.source == "configMap";
}

api::Quantity disk_usage(const MeasuredPod& measured, DiskParts parts, DiskResource resource) {
  const bool bytes = resource == DiskResource::kBytes;
  const auto format = bytes ? api::Quantity::Format::kBinarySI : api::Quantity::Format::kDecimalSI;
  api::Quantity total = api::Quantity::of_units(0, format);
  const auto add = [&](const api::FsStats& fs) { total += amount(bytes ? fs.used_bytes : fs.inodes_used, format); };
  for (const api::ContainerStats& container : measured.stats->containers) {
    if (parts.rootfs && container.rootfs) add(*container.rootfs);
    if (parts.logs && container.logs) add(*container.logs);
  }
  if (!parts.volumes) return total;
  for (const api::Volume& volume : measured.pod->spec.volumes) {
    if (!is_local(volume)) continue;
    const auto& measured_volumes = measured.stats->volumes;
    const auto found = std::ranges::find(measured_volumes, volume.name, &api::VolumeStats::name);
    if (found != measured_volumes.end()) add(found->fs);
  }
  return total;
}

/// Sorts pointers and moves each rank once: ranks are large.
template <typename Rank>
std::vector<Rank> sorted(std::vector<Rank> ranks) {
  std::vector<Rank*> order;
  order.reserve(ranks.size());
  for (Rank& rank : ranks) order.push_back(&rank);
  std::ranges::sort(order, [](const Rank* a, const Rank* b) { return (*a <=> *b) < 0; });
  std::vector<Rank> in_order;
  in_order.reserve(ranks.size());
  for (Rank* rank : order) in_order.push_back(std::move(*rank));
  return in_order;
}

/// A ranking key with the parts that all kinds of ranking share.
template <typename Rank>
Rank& add_rank(std::vector<Rank>& ranks, const MeasuredPod& measured) {
  Rank& rank = ranks.emplace_back();
  rank.measured = measured;
  rank.priority = api::priority_of(*measured.pod);
  rank.missing_stats = measured.stats == nullptr;
  return rank;
}

}  // namespace

std::vector<MeasuredPod> join_stats(std::span<const api::Pod* const> pods, std::span<const api::PodStats> stats) {
  const auto uid_of = [](const api::PodStats* each) -> const std::string& { return each->uid; };
  std::vector<const api::PodStats*> by_uid;
  by_uid.reserve(stats.size());
  for (const api::PodStats& each : stats) by_uid.push_back(&each);
  // Statistics are usually sorted by uid already.
  if (!std::ranges::is_sorted(by_uid, {}, uid_of)) {
    std::ranges::sort(by_uid, [](const api::PodStats* a, const api::PodStats* b) {
      if (const auto c = a->uid <=> b->uid; c != 0) return c < 0;
      return a < b;  // equal elements are of one list: ordered by address
    });
  }
  std::vector<MeasuredPod> joined;
  joined.reserve(pods.size());
  // position behind the last match: the next lookup begins there, since pods are usually ordered by uid, too
  auto expected = by_uid.begin();
  for (const api::Pod* pod : pods) {
    const std::string& uid = pod->metadata.uid;
    auto found = expected;
    if (found == by_uid.end() || (*found)->uid != uid) found = std::ranges::lower_bound(by_uid, uid, {}, uid_of);
    const api::PodStats* last = nullptr;
    for (; found != by_uid.end() && (*found)->uid == uid; ++found) last = *found;
    expected = found;
    joined.push_back({pod, last});
  }
  return joined;
}

std::strong_ordering by_name(const api::Pod& a, const api::Pod& b) {
  if (const auto c = a.metadata.ns <=> b.metadata.ns; c != 0) return c;
  if (const auto c = a.metadata.name <=> b.metadata.name; c != 0) return c;
  return a.metadata.uid <=> b.metadata.uid;
}

std::strong_ordering operator<=>(const UsageRank& a, const UsageRank& b) {
  if (const auto c = b.missing_stats <=> a.missing_stats; c != 0) return c;
  if (const auto c = b.exceeds_request <=> a.exceeds_request; c != 0) return c;
  if (const auto c = a.priority <=> b.priority; c != 0) return c;
  if (const auto c = b.above_request <=> a.above_request; c != 0) return c;
  return by_name(*a.measured.pod, *b.measured.pod);
}

std::strong_ordering operator<=>(const PidRank& a, const PidRank& b) {
  if (const auto c = a.priority <=> b.priority; c != 0) return c;
  if (const auto c = b.missing_stats <=> a.missing_stats; c != 0) return c;
  if (const auto c = b.processes <=> a.processes; c != 0) return c;
  return by_name(*a.measured.pod, *b.measured.pod);
}

DiskParts disk_parts(Signal signal, StorageLayout layout) {
  if (!layout.dedicated_image_fs) return {.rootfs = true, .logs = true, .volumes = true};
  const std::string_view name = to_string(signal);
  if (layout.is_split()) {
    if (name.starts_with("imagefs")) return {};
    return {.rootfs = true, .logs = true, .volumes = true};
  }
  if (name.starts_with("nodefs")) return {.rootfs = false, .logs = true, .volumes = true};
  return {.rootfs = true, .logs = false, .volumes = false};
}

std::vector<UsageRank> rank_for_memory(std::span<const MeasuredPod> pods) {
  std::vector<UsageRank> ranks;
  ranks.reserve(pods.size());
  for (const MeasuredPod& measured : pods) {
    UsageRank& rank = add_rank(ranks, measured);
    if (rank.missing_stats) continue;
    const api::Quantity request = api::agent_request(measured.pod->spec, kMemory);
    const std::optional<std::uint64_t> used =
        measured.stats->memory ? measured.stats->memory->working_set_bytes : std::nullopt;
    rank.above_request = amount(used, api::Quantity::Format::kBinarySI) - request;
    rank.exceeds_request = rank.above_request.sign() > 0;
  }
  return sorted(std::move(ranks));
}

std::vector<UsageRank> rank_for_disk(std::span<const MeasuredPod> pods, DiskParts parts, DiskResource resource) {
  std::vector<UsageRank> ranks;
  ranks.reserve(pods.size());
  for (const MeasuredPod& measured : pods) {
    UsageRank& rank = add_rank(ranks, measured);
    if (rank.missing_stats) continue;
    const api::Quantity usage = disk_usage(measured, parts, resource);
    const api::Quantity storage_request = api::agent_request(measured.pod->spec, kEphemeralStorage);
    rank.exceeds_request = resource == DiskResource::kBytes ? usage > storage_request
                                                            : usage > api::agent_request(measured.pod->spec, kInodes);
    rank.above_request = usage - storage_request;
  }
  return sorted(std::move(ranks));
}

std::vector<PidRank> rank_for_pids(std::span<const MeasuredPod> pods) {
  std::vector<PidRank> ranks;
  ranks.reserve(pods.size());
  for (const MeasuredPod& measured : pods) {
    PidRank& rank = add_rank(ranks, measured);
    if (!rank.missing_stats && measured.stats->process_count) rank.processes = *measured.stats->process_count;
  }
  return sorted(std::move(ranks));
}

}  // namespace spillway::eviction
