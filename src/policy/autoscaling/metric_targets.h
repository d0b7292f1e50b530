// What a HorizontalPodAutoscaler asks for, read from its document once: the metrics with their targets, the rules of
// growth and shrinking, and where the answer to a metric is to be had. Thread: any (pure). Source: Kubernetes API
// reference, HorizontalPodAutoscaler v2; Kubernetes docs, "Horizontal Pod Autoscaling", support for metrics APIs.
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
  std::string type;            // as it was written
  std::string_view member;     // where the document has it: "resource"
  std::string name;            // of the resource, or of the metric
  std::string container;       // kContainerResource
  std::string selector;        // of the metric, as text; empty: none
  api::ScaleTarget described;  // kObject: whose metric it is
  api::Json source;            // what its status repeats: name, container, metric, describedObject
  std::optional<std::int32_t> utilization;
  std::optional<std::int64_t> average_milli;
  std::optional<std::int64_t> value_milli;
};

std::vector<MetricTarget> metric_targets(const api::HorizontalPodAutoscaler& autoscaler);
/// nullopt: it has none, and the limits that need none hold.
std::optional<Behavior> behavior_of(const api::HorizontalPodAutoscaler& autoscaler,
                                    Duration down_stabilization = kDownStabilization);

/// Where the readings of a target are; `pods`: its selector as text. `described_plural`: how the API server calls the
/// kind of what it describes, "ingresses.networking.k8s.io"; of kObject only. Empty: nobody knows such a metric.
std::string question_path(const MetricTarget& target, std::string_view ns, std::string_view pods,
                          std::string_view described_plural);

}  // namespace spillway::autoscaling
