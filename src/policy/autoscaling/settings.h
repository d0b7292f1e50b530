// Settings shared by all autoscalers of a cluster. Thread: any (a value). Source: kube-controller-manager 1.32, flags
// --horizontal-pod-autoscaler-*, and their defaults.
#pragma once

#include "base/time.h"

namespace spillway::autoscaling {

inline constexpr Duration kDownStabilization = minutes(5);  // upstream's default

/// Periods in which the processor time of a starting pod does not count; both 0 or more.
struct StartPeriods {
  Duration cpu_initialization = minutes(5);
  Duration initial_readiness = seconds(30);
};

/// Shares by which a metric may be above or below its target without a change; 0 or more.
struct Tolerance {
  double up = 0.1;
  double down = 0.1;
};

struct Settings {
  Duration period = seconds(15);  // between two syncs of an autoscaler; above 0
  double tolerance = 0.1;         // in both directions, for autoscalers that set none; 0 or more
  /// The window of the highest recommendation for autoscalers that set none; 0 or more.
  Duration down_stabilization = kDownStabilization;
  StartPeriods start_periods{};
};

}  // namespace spillway::autoscaling
