// Every pod that differs in a way the memory ranking can see, for exhaustive tests over small sets of them.
#pragma once

#include "api/object/pod.h"
#include "api/object/summary.h"
#include "base/bytes.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::eviction {

struct PodKind {
  std::optional<std::int64_t> used_mib;  // nullopt: no stats
  std::int64_t request_mib = 0;
  std::int32_t priority = 0;

  bool critical() const { return priority >= 2'000'000'000; }
};

inline std::vector<PodKind> all_pod_kinds() {
  std::vector<PodKind> kinds;
  for (const std::optional<std::int64_t>& used :
       {std::optional<std::int64_t>(), std::optional<std::int64_t>(50), std::optional<std::int64_t>(150)}) {
    for (const std::int64_t request : {0, 100}) {
      for (const std::int32_t priority : {0, 10, 2'000'000'000}) kinds.push_back({used, request, priority});
    }
  }
  return kinds;
}

inline api::Pod make_pod(const PodKind& kind, std::size_t number) {
  api::Pod pod;
  pod.metadata.name = fmt::format("pod-{}", number);
  pod.metadata.ns = "shop";
  pod.metadata.uid = fmt::format("uid-{}", number);
  pod.spec.priority = kind.priority;
  api::Container& container = pod.spec.containers.emplace_back();
  container.name = "c";
  if (kind.request_mib > 0) {
    container.resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(kind.request_mib));
  }
  return pod;
}

/// nullopt: the pod has no measurement.
inline std::optional<api::PodStats> make_stats(const PodKind& kind, std::size_t number) {
  if (!kind.used_mib) return std::nullopt;
  api::PodStats stats;
  stats.uid = fmt::format("uid-{}", number);
  stats.memory.emplace().working_set_bytes = static_cast<std::uint64_t>(mebibytes(*kind.used_mib).count());
  return stats;
}

/// A node with this much of its 1000Mi of memory available.
inline api::Summary node_with(std::int64_t available_mib, WallTime at) {
  api::Summary summary;
  api::MemoryStats& memory = summary.node.memory.emplace();
  memory.time = at;
  memory.available_bytes = static_cast<std::uint64_t>(mebibytes(available_mib).count());
  memory.working_set_bytes = static_cast<std::uint64_t>(mebibytes(1000 - available_mib).count());
  return summary;
}

/// Calls `visit` with every multiset of 2 to `most` indices below `kinds`.
template <typename Visit>
void for_each_set(std::size_t kinds, std::size_t most, Visit visit) {
  std::vector<std::size_t> set;
  const auto extend = [&](const auto& self, std::size_t from) -> void {
    if (set.size() >= 2) visit(set);
    if (set.size() == most) return;
    for (std::size_t kind = from; kind < kinds; ++kind) {
      set.push_back(kind);
      self(self, kind);
      set.pop_back();
    }
  };
  extend(extend, 0);
}

}  // namespace spillway::eviction
