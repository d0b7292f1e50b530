// The next step of a HorizontalPodAutoscaler, and what holds it back. policy/autoscaling/autoscaler_plan.h decides;
// this describes its decision. Recent recommendations are in the memory of the controller alone, so this uses the last
// change and the conditions in their place. Thread: any (pure). Bounds: kRowsMax rows in a part. Source: Kubernetes
// docs, "Horizontal Pod Autoscaling"; spec "Scheduler and workloads", 20.
#pragma once

#include "api/object/horizontal_autoscaler.h"
#include "base/error.h"
#include "policy/autoscaling/autoscaler_plan.h"
#include "policy/outlook/outlook.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::outlook {

struct AutoscalerScene {
  const api::HorizontalPodAutoscaler& autoscaler;
  std::optional<Result<autoscaling::Scale>> scale;       // the target's scale; nullopt: the user may not read it
  std::optional<std::vector<autoscaling::PodPtr>> pods;  // pods that the target's selector matches; nullopt: not read
  std::vector<std::string> selecting;                    // keys of the autoscalers of this target, itself among them
  /// One answer per metric; empty where none is needed, nullopt if the user may not read metrics.
  std::optional<std::vector<autoscaling::MetricAnswer>> answers;
};

Outlook explain_autoscaler(const AutoscalerScene& scene, Now now);

}  // namespace spillway::outlook
