// Parses the answers of metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io into readings. An answer that
// cannot be read, or that lacks the requested metric, is an error and never a reading of nothing. Thread: any (pure).
// Source: Kubernetes API reference, PodMetrics v1beta1; MetricValueList v1beta2; ExternalMetricValueList v1beta1.
#pragma once

#include "api/json/json.h"
#include "base/error.h"
#include "policy/autoscaling/metric_targets.h"
#include "policy/autoscaling/replica_proposal.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace spillway::autoscaling {

/// One metric of an autoscaler, with the answer of its metrics API.
struct MetricAnswer {
  MetricTarget target;
  Result<api::Json> document;
};

/// The number of replicas that one metric proposes for its target.
struct MetricProposal {
  std::int32_t replicas = 0;
  std::string name;  // "cpu resource utilization (percentage of request)"
  api::Json status;  // an element of status.currentMetrics
};

/// The failure of one metric: the reason of the condition, and the text of both the condition and the event.
struct MetricFailure {
  std::string reason;
  std::string message;  // the text if this is the only metric
  std::string in_all;   // the text with its prefix, if several metrics are reported together
};

using MetricOutcome = std::variant<MetricProposal, MetricFailure>;

/// `present`: status.replicas of the target's scale; `ns`: of the autoscaler.
MetricOutcome propose_by_metric(const MetricAnswer& answer, const TargetView& view, std::int32_t present,
                                std::string_view ns);

}  // namespace spillway::autoscaling
