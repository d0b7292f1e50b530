// The Kubernetes events of an eviction. Thread: loop. Source: spec "Eviction manager", 5 (step 16), 8.
#pragma once

#include "agent/contract/context.h"
#include "policy/eviction/decide.h"

#include <string_view>

namespace spillway::agent {

/// Warning Evicted on the pod, with the annotations of the decision: one object for each eviction.
void post_evicted_event(AgentContext& context, const eviction::EvictPod& action, Now now);

/// Warning ExceededGracePeriod on the pod.
void record_exceeded_grace(AgentContext& context, const eviction::EvictPod& action, Now now);

/// Warning EvictionThresholdMet on the node.
void record_threshold_met(AgentContext& context, std::string_view message, Now now);

}  // namespace spillway::agent
