#include "proxy/proxy_metrics.h"

#include <vector>

namespace spillway::proxy {
namespace {

std::vector<double> buckets() {
  std::vector<double> out;
  double bound = 0.001;
  for (int i = 0; i < 15; ++i) {
    out.push_back(bound);
    bound *= 2;
  }
  return out;
}

double seconds_of(Duration duration) {
  return static_cast<double>(duration.count()) / 1e9;
}

}  // namespace

ProxyMetrics::ProxyMetrics(telemetry::Registry& metrics)
    : duration_(metrics.histogram("kubeproxy_sync_proxy_rules_duration_seconds", "Time to load rules", buckets())),
      whole_duration_(metrics.histogram("kubeproxy_sync_full_proxy_rules_duration_seconds",
                                        "Time to load all rules at once", buckets())),
      part_duration_(metrics.histogram("kubeproxy_sync_partial_proxy_rules_duration_seconds",
                                       "Time to load changes of rules", buckets())),
      loaded_(
          metrics.gauge("kubeproxy_sync_proxy_rules_last_timestamp_seconds", "Time at which rules were last loaded")),
      queued_(metrics.gauge("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds",
                            "Time of the last change that rules had to follow")),
      service_changes_(metrics.counter("kubeproxy_sync_proxy_rules_service_changes_total", "Changes of Services seen")),
      endpoint_changes_(
          metrics.counter("kubeproxy_sync_proxy_rules_endpoint_changes_total", "Changes of EndpointSlices seen")),
      failures_(metrics.counter("kubeproxy_sync_proxy_rules_nftables_sync_failures_total",
                                "Rules that could not be loaded")) {}

void ProxyMetrics::record_queued(WallTime now) {
  queued_.set(seconds_of(now.time_since_epoch()));
}

void ProxyMetrics::record_loaded(bool whole, Duration took, WallTime now) {
  duration_.observe(seconds_of(took));
  (whole ? whole_duration_ : part_duration_).observe(seconds_of(took));
  loaded_.set(seconds_of(now.time_since_epoch()));
}

}  // namespace spillway::proxy
