// The metrics of a store in etcd. Thread: any.
#pragma once

#include "telemetry/metrics.h"

#include <string_view>

namespace spillway::store {

struct EtcdMetrics {
  /// Without a registry nothing is counted. `store` distinguishes several stores, as a label; empty: no label.
  EtcdMetrics(telemetry::Registry* registry, std::string_view store);

  telemetry::Counter repeats;    // calls repeated at another member or later
  telemetry::Counter uncertain;  // writes whose outcome is unknown
  telemetry::Counter watch_resumes;
  telemetry::Counter watch_repeats;
  telemetry::Counter watch_gaps;
  telemetry::Gauge revision;
};

}  // namespace spillway::store
