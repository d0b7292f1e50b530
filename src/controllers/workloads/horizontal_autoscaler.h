// Scales the targets of HorizontalPodAutoscalers: reads the scale subresource of the target and the metrics of the
// spec, and writes the number of replicas that policy/autoscaling decides. Each is synced when it is new or changed,
// and then every Settings::period. Recent recommendations are kept in memory, as upstream keeps it. The target is one
// of the autoscaler's own namespace: no member of it becomes part of a path without being checked or encoded. One sync
// is autoscaler_sync.h. Thread: loop. Bounds: one sync of an autoscaler at a time, one call of it at a time. Source:
// Kubernetes docs, "Horizontal Pod Autoscaling"; spec "Scheduler and workloads", 20.
#pragma once

#include "api/object/horizontal_autoscaler.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/autoscaler_memory.h"
#include "controllers/workloads/autoscaler_metrics.h"
#include "policy/autoscaling/autoscaler_plan.h"
#include "telemetry/metrics.h"

#include <map>
#include <memory>
#include <string>

namespace spillway::controllers {

class HorizontalAutoscalerController {
 public:
  HorizontalAutoscalerController(Shared shared, client::Informer<api::HorizontalPodAutoscaler>& autoscalers,
                                 telemetry::Registry& metrics, autoscaling::Settings settings);
  HorizontalAutoscalerController(const HorizontalAutoscalerController&) = delete;
  HorizontalAutoscalerController& operator=(const HorizontalAutoscalerController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the autoscalers that are due; called at the end of every step.
  void run(Now now);

 private:
  using AutoscalerPtr = std::shared_ptr<const api::HorizontalPodAutoscaler>;

  void on_autoscaler(const AutoscalerPtr& before, const AutoscalerPtr& after, Now now);
  void arm();
  void sync(const std::string& key, Now now);

  Shared shared_;
  client::Informer<api::HorizontalPodAutoscaler>& autoscalers_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  AutoscalerMetrics autoscaler_metrics_;
  const autoscaling::Settings settings_;
  TargetKinds kinds_;
  std::map<std::string, AutoscalerMemory> memories_;  // by uid
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
