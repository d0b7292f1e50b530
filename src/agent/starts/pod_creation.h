// Brings an admitted pod onto the machine, in this order: its cgroup or directory with the allocated resources, its
// volumes, and events about fields that this node does not honour.
// Thread: loop. Bounds: one CreatePod for each pod. Source: spec "Pod lifecycle", 4, 6; spec "Node agent", 14.
#pragma once

#include "agent/contract/context.h"
#include "agent/pod_state/pod_events.h"
#include "agent/resizes/pod_resizes.h"
#include "agent/volumes/pod_volumes.h"

namespace spillway::agent {

class PodCreation {
 public:
  PodCreation(AgentContext& context, PodResizes& resizes, PodVolumes& volumes, PodEvents& events)
      : context_(context), resizes_(resizes), volumes_(volumes), events_(events) {}

  void create(PodWorker& worker, Now now);

 private:
  CreatePod command_for(const PodWorker& worker) const;
  void record_left_out(const PodWorker& worker, Now now);
  void record_dns_warnings(const PodWorker& worker, Now now);

  AgentContext& context_;
  PodResizes& resizes_;
  PodVolumes& volumes_;
  PodEvents& events_;
};

}  // namespace spillway::agent
