// The caches and parts of a scheduler. Included by scheduler*.cc only. Thread: loop.
#pragma once

#include "controllers/scheduling/attachment_cache.h"
#include "controllers/scheduling/binding_cycles.h"
#include "controllers/scheduling/extender_calls.h"
#include "controllers/scheduling/extender_cycles.h"
#include "controllers/scheduling/pod_conditions.h"
#include "controllers/scheduling/preemption_evaluator.h"
#include "controllers/scheduling/scheduler.h"
#include "controllers/scheduling/scheduler_metrics.h"
#include "controllers/scheduling/scheduler_timings.h"
#include "controllers/scheduling/surroundings_feed.h"
#include "controllers/scheduling/unschedulable_pods.h"
#include "controllers/scheduling/volume_binding.h"
#include "controllers/shared/storage_cache.h"
#include "policy/scheduling/placer.h"

namespace spillway::controllers {

/// The parts of the scheduler, in the order in which they use each other.
struct Scheduler::Parts {
  /// `owner`: its informers, queue and options have been constructed; it outlives the parts.
  Parts(Scheduler& owner, const Rng& rng, telemetry::Registry& registry);

  StorageCache storage;
  AttachmentCache attachments;
  scheduling::Placer placer;
  SchedulerMetrics metrics;
  SchedulerTimings timings;
  UnschedulablePods refused;
  ExtenderCalls extender_calls;
  ExtenderCycles cycles;
  PreemptionEvaluator preemption;
  PodConditions conditions;
  BindingCycles bindings;
  VolumeBinding volume_binding;
  SurroundingsFeed feed;
};

}  // namespace spillway::controllers
