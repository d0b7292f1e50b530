#include "store/etcd/etcd_metrics.h"

namespace spillway::store {

EtcdMetrics::EtcdMetrics(telemetry::Registry* registry) {
  if (registry == nullptr) return;
  repeats = registry->counter("spillway_etcd_repeated_calls_total", "Calls made again, at another member or later");
  uncertain = registry->counter("spillway_etcd_uncertain_writes_total",
                                "Writes that were answered with 504, as nobody can say whether they were done");
  watch_resumes = registry->counter("spillway_etcd_watch_resumes_total", "Watches begun again where they had ended");
  watch_repeats = registry->counter("spillway_etcd_watch_repeats_total", "Events that came again and were dropped");
  watch_gaps = registry->counter("spillway_etcd_watch_gaps_total", "Revisions that a watch left out");
  revision = registry->gauge("spillway_store_revision", "The newest revision");
}

}  // namespace spillway::store
