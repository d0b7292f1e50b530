// Metrics of the controller of HorizontalPodAutoscalers, by the names of kube-controller-manager. A sync lasts until
// its last write is answered, a metric until its answer is parsed, by the loop's clock. Thread: loop. Bounds: labels
// are words of this program. Source: Kubernetes docs, "Kubernetes Metrics Reference". Metrics:
// horizontal_pod_autoscaler_controller_reconciliations_total{action,error},
// horizontal_pod_autoscaler_controller_reconciliation_duration_seconds{action,error},
// horizontal_pod_autoscaler_controller_metric_computation_total{action,error,metric_type},
// horizontal_pod_autoscaler_controller_metric_computation_duration_seconds{action,error,metric_type}.
#pragma once

#include "base/time.h"
#include "policy/autoscaling/metric_targets.h"
#include "telemetry/metrics.h"

namespace spillway::controllers {

class AutoscalerMetrics {
 public:
  enum class Action { kScaleUp, kScaleDown, kNone };
  /// kSpec: the autoscaler names something impossible; kInternal: any other failure.
  enum class Failure { kNone, kSpec, kInternal };

  explicit AutoscalerMetrics(telemetry::Registry& metrics) : metrics_(metrics) {}

  AutoscalerMetrics(const AutoscalerMetrics&) = delete;
  AutoscalerMetrics& operator=(const AutoscalerMetrics&) = delete;

  void count_sync(Action action, Failure failure, Duration took);
  /// Counts one metric's result within a sync.
  void count_metric(autoscaling::MetricKind kind, Action action, Failure failure, Duration took);

 private:
  telemetry::Registry& metrics_;
};

}  // namespace spillway::controllers
