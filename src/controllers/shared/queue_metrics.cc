#include "controllers/shared/queue_metrics.h"

#include <chrono>
#include <utility>

namespace spillway::controllers {

QueueMetrics::QueueMetrics(telemetry::Registry& registry, std::string_view name)
    : depth_(registry.gauge("workqueue_depth", "Current depth of workqueue", {{"name", name}})),
      adds_(registry.counter("workqueue_adds_total", "Total number of adds handled by workqueue", {{"name", name}})),
      retries_(registry.counter("workqueue_retries_total", "Total number of retries handled by workqueue",
                                {{"name", name}})),
      waits_(registry.histogram("workqueue_queue_duration_seconds",
                                "How long in seconds an item stays in workqueue before being requested.",
                                {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}, {{"name", name}})) {}

std::optional<std::string> QueueMetrics::take(client::WorkQueue& queue, Instant now) {
  const std::optional<Instant> due = queue.next_due();
  std::optional<std::string> name = queue.take(now);
  if (name && due) waits_.observe(std::chrono::duration<double>(now - *due).count());
  return name;
}

void QueueMetrics::show(const client::WorkQueue& queue, Instant now) {
  depth_.set(static_cast<double>(queue.count_due(now)));
  adds_.add(static_cast<double>(queue.adds() - std::exchange(adds_shown_, queue.adds())));
  retries_.add(static_cast<double>(queue.retries() - std::exchange(retries_shown_, queue.retries())));
}

}  // namespace spillway::controllers
