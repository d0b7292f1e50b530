// Settings shared by all autoscalers of a cluster. Thread: any (a value). Source: kube-controller-manager 1.32, flags
// --horizontal-pod-autoscaler-*, and their defaults.
#pragma once

#include "base/time.h"

namespace spillway::autoscaling {

inline constexpr Duration kDownStabilization = minutes(5);  // upstream's default

/// When the processor time that a pod has used does not count yet; both 0 or more.
struct StartPeriods {
  Duration cpu_initialization = minutes(5);
  Duration initial_readiness = seconds(30);
};

struct Settings {
  Duration period = seconds(15);  // between two syncs of an autoscaler; above 0
  double tolerance = 0.1;         // share by which a metric may be off without a change; 0 or more
  /// For so long the highest recommendation holds, where an autoscaler does not say; 0 or more.
  Duration down_stabilization = kDownStabilization;
  StartPeriods start_periods{};
};

}  // namespace spillway::autoscaling
