// The node and pods on which reference costs were measured. Source: spec "Eviction manager", 18.
#pragma once

#include "api/object/pod.h"
#include "api/object/summary.h"
#include "policy/eviction/decide.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace spillway::eviction {

struct ReferenceLoad {
  explicit ReferenceLoad(int count) {
    pods.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      api::Pod& pod = pods.emplace_back();
      pod.metadata.name = fmt::format("pod-{:05}", i);
      pod.metadata.ns = "default";
      pod.metadata.uid = fmt::format("uid-{:05}", i);
      pod.spec.priority = static_cast<std::int32_t>(i * 7919 % 5 * 1000);
      api::Container& container = pod.spec.containers.emplace_back();
      container.name = "c";
      container.resources.requests["memory"] = api::Quantity::of_bytes(mebibytes(64 + i * 104729 % 192));
      const auto used = static_cast<std::uint64_t>(50331648 + i * 1299709 % 268435399);
      api::PodStats& stats = summary.pods.emplace_back();
      stats.uid = pod.metadata.uid;
      stats.ns = pod.metadata.ns;
      stats.name = pod.metadata.name;
      stats.memory.emplace().working_set_bytes = used;
      api::ContainerStats& measured = stats.containers.emplace_back();
      measured.name = "c";
      measured.memory.emplace().working_set_bytes = used;
    }
    for (const api::Pod& pod : pods) active.push_back(&pod);
    const auto memory = [](std::int64_t available_mib, std::int64_t used_mib) {
      api::MemoryStats stats;
      stats.available_bytes = static_cast<std::uint64_t>(mebibytes(available_mib).count());
      stats.working_set_bytes = static_cast<std::uint64_t>(mebibytes(used_mib).count());
      return stats;
    };
    summary.node.memory = memory(512, 15872);
    api::ContainerStats& system = summary.node.system_containers.emplace_back();
    system.name = "pods";
    system.memory = memory(4096, 11264);
    api::FsStats fs;
    fs.available_bytes = static_cast<std::uint64_t>(gibibytes(50).count());
    fs.capacity_bytes = static_cast<std::uint64_t>(gibibytes(100).count());
    fs.inodes_free = 5'000'000;
    fs.inodes = 6'000'000;
    summary.node.fs = summary.node.image_fs = summary.node.container_fs = fs;
  }

  std::vector<api::Pod> pods;
  std::vector<const api::Pod*> active;
  api::Summary summary;
};

}  // namespace spillway::eviction
