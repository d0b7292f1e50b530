// One sync of a HorizontalPodAutoscaler: the number of replicas for its target, the reason, and its status. Without a
// metric that can be read nothing is scaled, and while one of several cannot be read nothing is scaled down.
// Thread: any (pure). Bounds: those of the history. Source: Kubernetes docs, "Horizontal Pod Autoscaling"; spec
// "Scheduler and workloads", 20; kube-controller-manager 1.32, texts of conditions and events.
#pragma once

#include "api/json/json.h"
#include "api/object/horizontal_autoscaler.h"
#include "base/error.h"
#include "base/time.h"
#include "policy/autoscaling/metric_answers.h"
#include "policy/autoscaling/scale_limits.h"
#include "policy/autoscaling/settings.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::autoscaling {

/// The scale subresource of a target.
struct Scale {
  std::int32_t replicas = 0;  // the wanted number
  std::int32_t present = 0;
  std::string selector;
};

Scale read_scale(const api::Json& document);

struct AutoscalerEvent {
  bool warning = false;
  std::string reason;
  std::string message;
};

struct AutoscalerView {
  const api::HorizontalPodAutoscaler& autoscaler;
  const Scale& scale;
  std::vector<PodPtr> pods;            // the pods that the scale's selector matches
  std::vector<std::string> selecting;  // keys of the autoscalers that do so, itself among them
  std::vector<MetricAnswer> answers;   // one answer per metric, if needs_metrics()
  const History& history;
  const Settings& settings;
};

struct AutoscalerPlan {
  std::optional<std::int32_t> replicas;  // the new target size; nullopt: unchanged
  std::string why;                       // the cause of the change
  bool failed = false;                   // a read or a write failed; the autoscaler may scale nevertheless
  /// The replicas that each metric proposes by itself, in the order of the answers; nullopt: its reading failed. Empty:
  /// no metric was evaluated.
  std::vector<std::optional<std::int32_t>> proposals;
  std::vector<AutoscalerEvent> events;
  api::AutoscalerStatus status;
  History history;
};

/// False if the scale is zero or outside the range: the number of replicas then follows without a metric.
bool needs_metrics(const api::HorizontalPodAutoscaler& autoscaler, const Scale& scale);

AutoscalerPlan plan_autoscaler(const AutoscalerView& view, Now now);
/// The plan for a target without a scale, or with one that cannot be parsed.
AutoscalerPlan plan_without_scale(const api::HorizontalPodAutoscaler& autoscaler, const Error& why, Now now);

/// Add the result of writing `plan.replicas` to the plan's status and events.
void record_scaled(AutoscalerPlan& plan, const api::HorizontalPodAutoscaler& autoscaler, const Scale& before,
                   Duration down_stabilization, Now now);
void record_not_scaled(AutoscalerPlan& plan, const api::HorizontalPodAutoscaler& autoscaler, const Error& why, Now now);

/// The status as a patch: removed members are null.
api::Json status_document(const api::AutoscalerStatus& status);

}  // namespace spillway::autoscaling
