#include "controllers/shared/lifecycle_metrics.h"

namespace spillway::controllers {

LifecycleMetrics::LifecycleMetrics(telemetry::Registry& registry)
    : pod_deletions(registry.counter("taint_eviction_controller_pod_deletions_total",
                                     "Total number of Pods deleted by TaintEvictionController since its start.")),
      pod_deletion_seconds(registry.histogram(
          "taint_eviction_controller_pod_deletion_duration_seconds",
          "Latency, in seconds, between the time when a taint effect has been activated for the Pod and its deletion.",
          {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240})),
      eviction_timers(
          registry.gauge("spillway_taint_eviction_timers", "Pods that are evicted when their toleration ends")),
      status_writes(registry.counter("spillway_node_lifecycle_status_writes_total",
                                     "Node statuses set to Unknown because the node went silent")),
      status_write_failures(registry.counter("spillway_node_lifecycle_status_write_failures_total",
                                             "Node statuses that could not be written in a pass")),
      master_disruption(registry.gauge("spillway_node_lifecycle_master_disruption",
                                       "1 while every zone is in full disruption and nothing is evicted")),
      registry_(registry) {}

void LifecycleMetrics::show_zones(const lifecycle::NodeMonitor& monitor, Instant now) {
  const auto show = [this](const std::string& zone, const lifecycle::ZoneCounts& counts) {
    const double size = counts.size();
    const double healthy = counts.size() == 0 ? 100.0 : 100.0 * counts.ready / size;
    registry_
        .gauge("node_collector_zone_size", "Gauge measuring number of registered Nodes per zones.", {{"zone", zone}})
        .set(size);
    registry_
        .gauge("node_collector_zone_health", "Gauge measuring percentage of healthy nodes per zone.", {{"zone", zone}})
        .set(healthy);
    registry_
        .gauge("node_collector_unhealthy_nodes_in_zone", "Gauge measuring number of not Ready Nodes per zones.",
               {{"zone", zone}})
        .set(counts.unready);
  };
  ++passes_;
  std::set<std::string> seen;
  for (const auto& [key, zone] : monitor.zones()) {
    const std::string name = lifecycle::readable_zone(key);
    seen.insert(name);
    show(name, zone.counts);
    evictions(name).add(0);
    const auto oldest = zone.queue.oldest_added();
    const double waited = oldest ? std::chrono::duration<double>(now - *oldest).count() : 0.0;
    registry_.gauge("spillway_zone_queue_nodes", "Nodes that wait to be tainted", {{"zone", name}})
        .set(static_cast<double>(zone.queue.size()));
    registry_.gauge("spillway_zone_queue_oldest_seconds", "Age of the oldest entry in the queue", {{"zone", name}})
        .set(waited);
    registry_.gauge("spillway_zone_eviction_rate", "Nodes per second that may be tainted", {{"zone", name}})
        .set(static_cast<double>(zone.queue.limiter().effective_rate()));
  }
  for (const std::string& gone : zones_) {
    if (!seen.contains(gone)) show(gone, {});
  }
  zones_ = std::move(seen);
  master_disruption.set(monitor.in_master_disruption() ? 1 : 0);
}

void LifecycleMetrics::node_tainted(const std::string& zone_key) {
  evictions(lifecycle::readable_zone(zone_key)).add();
}

telemetry::Counter LifecycleMetrics::evictions(const std::string& readable_zone) {
  return registry_.counter("node_collector_evictions_total",
                           "Number of Node evictions that happened since current instance of "
                           "NodeController started.",
                           {{"zone", readable_zone}});
}

}  // namespace spillway::controllers
