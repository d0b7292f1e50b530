// The order and the graces in which pods end when the node shuts down.
// Thread: any (pure). Source: Kubernetes docs, "Node Shutdowns", graceful node shutdown; KEP-2000, KEP-2712; spec "Node
// agent", 19; vectors node-agent/shutdown_groups.
#pragma once

#include "agent/contract/shutdown_settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::agent {

/// Ascending by priority; empty: pods are not ended gracefully.
std::vector<PriorityGrace> shutdown_groups(const ShutdownSettings& settings);

struct ShutdownPod {
  std::string name;
  std::int32_t priority = 0;
  std::optional<std::int64_t> spec_grace_seconds;
};

struct ShutdownPodGrace {
  std::string name;
  std::int64_t grace_seconds = 0;
};

struct ShutdownStep {
  PriorityGrace group;
  std::vector<ShutdownPodGrace> pods;  // in their given order; empty: nothing is waited for
};

/// One step per group in order. A pod belongs to the group with the largest priority not above its own, else the
/// lowest.
std::vector<ShutdownStep> plan_shutdown(const std::vector<PriorityGrace>& groups, const std::vector<ShutdownPod>& pods);

/// The time by which the machine's shutdown has to be delayed.
std::int64_t shutdown_delay_seconds(const std::vector<PriorityGrace>& groups);

}  // namespace spillway::agent
