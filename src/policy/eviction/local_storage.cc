#include "policy/eviction/local_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace spillway::eviction {
namespace {

constexpr std::string_view kStorageResource = "ephemeral-storage";

using MaybeQuantity = std::optional<api::Quantity>;

api::Quantity measured_bytes(std::uint64_t bytes) {
  return api::Quantity::of_bytes(Bytes{static_cast<std::int64_t>(bytes)});
}

MaybeQuantity storage_limit(const api::Container& container) {
  const auto it = container.resources.limits.find(kStorageResource);
  return it == container.resources.limits.end() ? std::nullopt : MaybeQuantity(it->second);
}

MaybeQuantity add(MaybeQuantity sum, const MaybeQuantity& more) {
  if (!more) return sum;
  if (!sum) return more;
  *sum += *more;
  return sum;
}

/// nullopt: no container has a limit.
MaybeQuantity pod_limit(const api::PodSpec& spec) {
  MaybeQuantity total;
  for (const api::Container& container : spec.containers) total = add(std::move(total), storage_limit(container));
  MaybeQuantity sidecars;
  MaybeQuantity init;
  for (const api::Container& container : spec.init_containers) {
    const MaybeQuantity own = storage_limit(container);
    MaybeQuantity together;
    if (api::is_sidecar(container)) {
      total = add(std::move(total), own);
      sidecars = add(std::move(sidecars), own);
      together = sidecars;
    } else {
      together = add(own, sidecars);
    }
    if (together && (!init || *together > *init)) init = std::move(together);
  }
  if (init && (!total || *init > *total)) total = std::move(init);
  const auto overhead = spec.overhead.find(kStorageResource);
  if (total && !total->is_zero() && overhead != spec.overhead.end()) *total += overhead->second;
  return total;
}

MaybeQuantity used_by_volume(const api::PodStats& stats, std::string_view name) {
  MaybeQuantity used;
  for (const api::VolumeStats& volume : stats.volumes) {
    if (volume.name != name) continue;
    used = volume.fs.used_bytes ? MaybeQuantity(measured_bytes(*volume.fs.used_bytes)) : std::nullopt;
  }
  return used;
}

MaybeQuantity used_by_container(const api::ContainerStats& container, StorageLayout layout) {
  api::Quantity used = measured_bytes(0);
  if (container.logs && container.logs->used_bytes) used += measured_bytes(*container.logs->used_bytes);
  if (!layout.dedicated_image_fs && container.rootfs && container.rootfs->used_bytes) {
    used += measured_bytes(*container.rootfs->used_bytes);
  }
  return used;
}

std::optional<StorageViolation> empty_dir_violation(const MeasuredPod& measured) {
  for (const api::Volume& volume : measured.pod->spec.volumes) {
    if (!volume.empty_dir || !volume.empty_dir->size_limit || volume.empty_dir->size_limit->sign() <= 0) continue;
    const api::Quantity& limit = *volume.empty_dir->size_limit;
    const MaybeQuantity used = used_by_volume(*measured.stats, volume.name);
    if (!used || *used <= limit) continue;
    return StorageViolation{measured.pod,
                            "emptydirfs.limit",
                            volume.name,
                            *used,
                            limit,
                            fmt::format("Usage of EmptyDir volume {} exceeds the limit {}. ", quoted(volume.name),
                                        quoted(limit.to_string()))};
  }
  return std::nullopt;
}

std::optional<StorageViolation> pod_violation(const MeasuredPod& measured) {
  const MaybeQuantity limit = pod_limit(measured.pod->spec);
  if (!limit || !measured.stats->ephemeral_storage) return std::nullopt;
  const api::Quantity used = measured_bytes(measured.stats->ephemeral_storage->used_bytes.value_or(0));
  if (used <= *limit) return std::nullopt;
  return StorageViolation{
      measured.pod,
      "ephemeralpodfs.limit",
      {},
      used,
      *limit,
      fmt::format("Pod ephemeral local storage usage exceeds the total limit of containers {}. ", limit->to_string())};
}

std::optional<StorageViolation> container_violation(const MeasuredPod& measured, StorageLayout layout) {
  for (const api::ContainerStats& stats : measured.stats->containers) {
    const auto& containers = measured.pod->spec.containers;
    const auto container = std::ranges::find(containers, stats.name, &api::Container::name);
    if (container == containers.end()) continue;
    const MaybeQuantity limit = storage_limit(*container);
    if (!limit || limit->is_zero()) continue;
    const MaybeQuantity used = used_by_container(stats, layout);
    if (*used <= *limit) continue;
    return StorageViolation{measured.pod,
                            "ephemeralcontainerfs.limit",
                            stats.name,
                            *used,
                            *limit,
                            fmt::format("Container {} exceeded its local ephemeral storage limit {}. ", stats.name,
                                        quoted(limit->to_string()))};
  }
  return std::nullopt;
}

}  // namespace

std::vector<StorageViolation> find_storage_violations(std::span<const MeasuredPod> pods, StorageLayout layout) {
  std::vector<StorageViolation> violations;
  for (const MeasuredPod& measured : pods) {
    if (measured.stats == nullptr || api::is_critical(*measured.pod)) continue;
    std::optional<StorageViolation> found = empty_dir_violation(measured);
    if (!found) found = pod_violation(measured);
    if (!found) found = container_violation(measured, layout);
    if (found) violations.push_back(std::move(*found));
  }
  return violations;
}

std::string quoted(std::string_view text) {
  static constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\"\\";
  static constexpr std::string_view kLetters = "abfnrtv\"\\";
  std::string out = "\"";
  for (const char c : text) {
    const auto at = kNamed.find(c);
    if (at != std::string_view::npos) {
      out += '\\';
      out += kLetters[at];
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

}  // namespace spillway::eviction
