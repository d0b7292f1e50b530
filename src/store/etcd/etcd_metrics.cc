#include "store/etcd/etcd_metrics.h"

namespace spillway::store {

EtcdMetrics::EtcdMetrics(telemetry::Registry* registry, std::string_view store) {
  if (registry == nullptr) return;
  const auto counter = [&](std::string_view name, std::string_view help) {
    return store.empty() ? registry->counter(name, help) : registry->counter(name, help, {{"store", store}});
  };
  repeats = counter("spillway_etcd_repeated_calls_total", "Calls made again, at another member or later");
  uncertain = counter("spillway_etcd_uncertain_writes_total",
                      "Writes that were answered with 504, because their outcome is unknown");
  watch_resumes = counter("spillway_etcd_watch_resumes_total", "Watches begun again where they had ended");
  watch_repeats = counter("spillway_etcd_watch_repeats_total", "Repeated events that were dropped");
  watch_gaps = counter("spillway_etcd_watch_gaps_total", "Revisions that were missing in a watch");
  constexpr std::string_view kRevision = "spillway_store_revision";
  constexpr std::string_view kNewest = "The newest revision";
  revision =
      store.empty() ? registry->gauge(kRevision, kNewest) : registry->gauge(kRevision, kNewest, {{"store", store}});
}

}  // namespace spillway::store
