// May this pod start on this node now? The agent's own answer, asked again for every pod it is given, whatever the
// scheduler thought.
// Thread: any (pure). Source: spec "Pod admission", 2, 3, 6.
#pragma once

#include "api/pod.h"
#include "policy/eviction/admit.h"

#include <span>
#include <string_view>

namespace spillway::agent {

struct NodeForAdmission {
  std::string_view node_name;
  std::string_view operating_system;
  const api::ResourceList& allocatable;
  const api::StringMap& labels;
  std::span<const api::Taint> taints;
  eviction::ConditionSet conditions;
};

/// Pressure, operating system, room (pods, cpu, memory, ephemeral-storage, then others by name), node selector, taints
/// with NoExecute; the first no counts. `others`: every other pod that is not finished.
eviction::Admission admit_pod(const NodeForAdmission& node, const api::Pod& pod,
                              std::span<const api::Pod* const> others);

}  // namespace spillway::agent
