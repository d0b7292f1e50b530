#include "controllers/workloads/autoscaler_metrics.h"

#include "telemetry/histogram_bounds.h"

#include <string_view>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

using autoscaling::MetricKind;
using Action = AutoscalerMetrics::Action;
using Failure = AutoscalerMetrics::Failure;

/// Buckets from 1 ms to 16 s.
std::vector<double> autoscaler_bounds() {
  return telemetry::exponential_bounds(0.001, 2, 15);
}

std::string_view text_of(Action action) {
  switch (action) {
    case Action::kScaleUp:
      return "scale_up";
    case Action::kScaleDown:
      return "scale_down";
    case Action::kNone:
      return "none";
  }
  std::unreachable();
}

std::string_view text_of(Failure failure) {
  switch (failure) {
    case Failure::kNone:
      return "none";
    case Failure::kSpec:
      return "spec";
    case Failure::kInternal:
      return "internal";
  }
  std::unreachable();
}

std::string_view text_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kResource:
      return "Resource";
    case MetricKind::kContainerResource:
      return "ContainerResource";
    case MetricKind::kPods:
      return "Pods";
    case MetricKind::kObject:
      return "Object";
    case MetricKind::kExternal:
      return "External";
    case MetricKind::kUnknown:
      return "unknown";
  }
  std::unreachable();
}

}  // namespace

void AutoscalerMetrics::count_sync(Action action, Failure failure, Duration took) {
  metrics_
      .counter("horizontal_pod_autoscaler_controller_reconciliations_total", "Syncs of autoscalers",
               {{"action", text_of(action)}, {"error", text_of(failure)}})
      .add();
  metrics_
      .histogram("horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
                 "Duration of a sync of an autoscaler, its reads and writes included, in seconds", autoscaler_bounds(),
                 {{"action", text_of(action)}, {"error", text_of(failure)}})
      .observe(std::chrono::duration<double>(took).count());
}

void AutoscalerMetrics::count_metric(MetricKind kind, Action action, Failure failure, Duration took) {
  metrics_
      .counter("horizontal_pod_autoscaler_controller_metric_computation_total",
               "Metrics of autoscalers that were read and evaluated",
               {{"action", text_of(action)}, {"error", text_of(failure)}, {"metric_type", text_of(kind)}})
      .add();
  metrics_
      .histogram("horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
                 "Duration of reading a metric of an autoscaler, in seconds", autoscaler_bounds(),
                 {{"action", text_of(action)}, {"error", text_of(failure)}, {"metric_type", text_of(kind)}})
      .observe(std::chrono::duration<double>(took).count());
}

}  // namespace spillway::controllers
