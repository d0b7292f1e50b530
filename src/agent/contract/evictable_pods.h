// The eviction engine's interface to the pods of its node: the pods that may be evicted, and their eviction.
// Implemented by the agent's own workers (pod_workers.h), and beside a kubelet for the kubelet's pods
// (companion/foreign_pods.h).
// Thread: loop.
#pragma once

#include "api/object/pod.h"
#include "policy/eviction/decide.h"

#include <string>
#include <vector>

namespace spillway::agent {

enum class Urgency { kGrace, kEmergency };

class EvictablePods {
 public:
  virtual ~EvictablePods() = default;

  /// Pods that run here and are not finished, in namespace/name order. Valid until the next event.
  virtual std::vector<const api::Pod*> active() const = 0;
  /// Ends the pod as decided. kEmergency: without any grace.
  virtual void evict(const eviction::EvictPod& action, Urgency urgency, Now now) = 0;
  /// Takes the remaining grace from a pod that is being ended.
  virtual void kill_now(const std::string& uid) = 0;
};

}  // namespace spillway::agent
