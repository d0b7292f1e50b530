// Metrics of a proxy, by the names of kube-proxy. Thread: loop.
// Source: Kubernetes docs, "Kubernetes Metrics Reference".
// Metrics: kubeproxy_sync_proxy_rules_duration_seconds, kubeproxy_sync_full_proxy_rules_duration_seconds,
// kubeproxy_sync_partial_proxy_rules_duration_seconds, kubeproxy_sync_proxy_rules_last_timestamp_seconds,
// kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds, kubeproxy_sync_proxy_rules_endpoint_changes_total,
// kubeproxy_sync_proxy_rules_service_changes_total, kubeproxy_sync_proxy_rules_nftables_sync_failures_total.
#pragma once

#include "base/time.h"
#include "telemetry/metrics.h"

namespace spillway::proxy {

class ProxyMetrics {
 public:
  explicit ProxyMetrics(telemetry::Registry& metrics);

  void count_service_change() { service_changes_.add(); }

  void count_endpoint_change() { endpoint_changes_.add(); }

  void record_queued(WallTime now);

  void count_failure() { failures_.add(); }

  /// `whole`: all rules were written.
  void record_loaded(bool whole, Duration took, WallTime now);

 private:
  telemetry::Histogram duration_;
  telemetry::Histogram whole_duration_;
  telemetry::Histogram part_duration_;
  telemetry::Gauge loaded_;
  telemetry::Gauge queued_;
  telemetry::Counter service_changes_;
  telemetry::Counter endpoint_changes_;
  telemetry::Counter failures_;
};

}  // namespace spillway::proxy
