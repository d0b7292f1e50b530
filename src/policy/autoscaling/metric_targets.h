// The spec of a HorizontalPodAutoscaler, parsed once: the metrics with their targets, the rules of growth and
// shrinking, and the path at which a metric is requested. Thread: any (pure). Source: Kubernetes API reference,
// HorizontalPodAutoscaler v2; Kubernetes docs, "Horizontal Pod Autoscaling", support for metrics APIs.
#pragma once

#include "api/json/json.h"
#include "api/object/horizontal_autoscaler.h"
#include "policy/autoscaling/scale_limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::autoscaling {

enum class MetricKind { kResource, kContainerResource, kPods, kObject, kExternal, kUnknown };

struct MetricTarget {
  MetricKind kind = MetricKind::kUnknown;
  std::string type;            // type as in the spec
  std::string_view member;     // the member of the document: "resource"
  std::string name;            // the resource's or the metric's
  std::string container;       // kContainerResource
  std::string selector;        // the metric's, as text; empty: none
  api::ScaleTarget described;  // kObject: the object that the metric is about
  api::Json source;            // the members that the status repeats: name, container, metric, describedObject
  std::optional<std::int32_t> utilization;
  std::optional<std::int64_t> average_milli;
  std::optional<std::int64_t> value_milli;
};

std::vector<MetricTarget> metric_targets(const api::HorizontalPodAutoscaler& autoscaler);
/// nullopt: the autoscaler has no behavior, and the limits of autoscaling/v1 apply.
std::optional<Behavior> behavior_of(const api::HorizontalPodAutoscaler& autoscaler,
                                    Duration down_stabilization = kDownStabilization);

/// The tolerances in the autoscaler's behavior; `by_default` for a direction without one.
Tolerance tolerance_of(const api::HorizontalPodAutoscaler& autoscaler, double by_default);

/// The path at which the readings of a target are requested. `pods`: the target's selector as text. `described_plural`:
/// the API server's name for the kind of the described object, "ingresses.networking.k8s.io"; for kObject only. Empty:
/// no API serves such a metric.
std::string question_path(const MetricTarget& target, std::string_view ns, std::string_view pods,
                          std::string_view described_plural);

}  // namespace spillway::autoscaling
