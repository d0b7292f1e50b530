// The eviction manager's answer to a new pod: under pressure some are turned away.
// Thread: any (pure). Source: spec "Eviction manager", 12; "Pod admission", 3.
#pragma once

#include "api/pod.h"
#include "policy/eviction/conditions.h"

#include <span>
#include <string>

namespace spillway::eviction {

struct Admission {
  bool admit = true;
  std::string reason;   // "Evicted"
  std::string message;  // "The node had condition: [MemoryPressure]. "

  friend bool operator==(const Admission&, const Admission&) = default;
};

/// Critical pods always pass. Under memory pressure alone only BestEffort pods that do not tolerate it are refused.
/// `reported`: in the order in which the message names them.
Admission admit_pod(std::span<const Condition> reported, const api::Pod& pod);

}  // namespace spillway::eviction
