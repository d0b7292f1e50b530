// The order in which pods would be evicted. The members of the key, top to bottom, are the policy, and every pod's key
// is kept as its reason. Thread: any (pure). Invariant: the order is total; ties end in namespace/name, then uid
// (upstream leaves them open). Source: Kubernetes docs, "Node-pressure Eviction", pod selection; spec "Eviction
// manager", 7.
#pragma once

#include "api/object/pod.h"
#include "api/object/summary.h"
#include "policy/eviction/containerfs.h"
#include "policy/eviction/signal.h"

#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spillway::eviction {

/// A pod and what was measured of it; stats null: no entry at all. Both outlive the value.
struct MeasuredPod {
  const api::Pod* pod = nullptr;
  const api::PodStats* stats = nullptr;
};

/// Finds stats by uid; of two entries with the same uid the later counts. Order of `pods`.
std::vector<MeasuredPod> join_stats(std::span<const api::Pod* const> pods, std::span<const api::PodStats> stats);

/// Namespace, name, uid: where every order ends.
std::strong_ordering by_name(const api::Pod& a, const api::Pod& b);

/// Smallest first: a pod that cannot be measured, then those above their request, then lower priority, then larger
/// usage above the request.
struct UsageRank {
  bool missing_stats = false;
  bool exceeds_request = false;
  std::int32_t priority = 0;
  api::Quantity above_request;  // negative below the request; zero if nothing was measured
  MeasuredPod measured;

  friend std::strong_ordering operator<=>(const UsageRank& a, const UsageRank& b);

  friend bool operator==(const UsageRank& a, const UsageRank& b) { return (a <=> b) == 0; }
};

/// Smallest first: lower priority, then a pod that cannot be measured, then more processes.
struct PidRank {
  std::int32_t priority = 0;
  bool missing_stats = false;
  std::uint64_t processes = 0;
  MeasuredPod measured;

  friend std::strong_ordering operator<=>(const PidRank& a, const PidRank& b);

  friend bool operator==(const PidRank& a, const PidRank& b) { return (a <=> b) == 0; }
};

/// Parts of a pod's local storage that count against a filesystem.
struct DiskParts {
  bool rootfs = false;
  bool logs = false;
  bool volumes = false;

  friend bool operator==(const DiskParts&, const DiskParts&) = default;
};

/// A signal of nodefs, imagefs or containerfs.
DiskParts disk_parts(Signal signal, StorageLayout layout);

enum class DiskResource { kBytes, kInodes };

std::vector<UsageRank> rank_for_memory(std::span<const MeasuredPod> pods);
/// Inodes: a pod exceeds its request for "inodes", but the excess subtracts the ephemeral-storage request in bytes; a
/// slip of upstream's that affects the order.
std::vector<UsageRank> rank_for_disk(std::span<const MeasuredPod> pods, DiskParts parts, DiskResource resource);
std::vector<PidRank> rank_for_pids(std::span<const MeasuredPod> pods);

}  // namespace spillway::eviction
