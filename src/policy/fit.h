// Checks that a node has room for a pod's requests. The scheduler and the agent share this rule.
// Thread: any (pure). Source: spec "Pod admission", 6 (Fit); vectors admission/fit.
#pragma once

#include "policy/node_load.h"
#include "policy/reason.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::policy {

/// One resource of which there is not enough: milli-CPU for cpu, units for everything else.
struct Shortage {
  std::string resource;  // "pods" for the number of pods
  std::int64_t requested = 0;
  std::int64_t used = 0;
  std::int64_t capacity = 0;

  friend bool operator==(const Shortage&, const Shortage&) = default;
};

/// All shortages if a pod that requests `wanted` joined the node: pods, cpu, memory, ephemeral-storage, then the others
/// by name. A resource that the pod does not request is never short, even on a node above its limits.
std::vector<Shortage> find_shortages(const Amounts& wanted, const NodeLoad& node);

/// "Too many pods" or "Insufficient <resource>".
std::string shortage_text(const Shortage& shortage);
Reason reason_of(const Shortage& shortage);

}  // namespace spillway::policy
