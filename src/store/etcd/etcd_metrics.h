// What a store in etcd says about itself in numbers. Thread: any.
#pragma once

#include "telemetry/metrics.h"

#include <string_view>

namespace spillway::store {

struct EtcdMetrics {
  /// Without a registry nothing is counted. `store` tells several of them apart, as a label; empty: there is none.
  EtcdMetrics(telemetry::Registry* registry, std::string_view store);

  telemetry::Counter repeats;    // of calls, at another member or later
  telemetry::Counter uncertain;  // writes of which nobody can say whether they were done
  telemetry::Counter watch_resumes;
  telemetry::Counter watch_repeats;
  telemetry::Counter watch_gaps;
  telemetry::Gauge revision;
};

}  // namespace spillway::store
