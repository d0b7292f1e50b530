// Metrics of a work queue, as client-go has them, under its names: workqueue_depth, _adds_total, _retries_total and
// _queue_duration_seconds, by the queue's name. How long the work takes is not shown: a key is synced within one step
// of the loop, so none is ever unfinished. Thread: loop. Source: client-go, workqueue metrics.
#pragma once

#include "base/time.h"
#include "client/work_queue.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::controllers {

class QueueMetrics {
 public:
  QueueMetrics(telemetry::Registry& registry, std::string_view name);

  /// Takes from the queue and observes the wait of the entry.
  std::optional<std::string> take(client::WorkQueue& queue, Instant now);
  /// Called after a step.
  void show(const client::WorkQueue& queue, Instant now);

 private:
  telemetry::Gauge depth_;
  telemetry::Counter adds_;
  telemetry::Counter retries_;
  telemetry::Histogram waits_;
  std::uint64_t adds_shown_ = 0;
  std::uint64_t retries_shown_ = 0;
};

}  // namespace spillway::controllers
