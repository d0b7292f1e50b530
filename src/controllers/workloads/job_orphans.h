// Takes the finalizer from pods that no Job counts any more: theirs is gone, has finished, or is kept by another
// controller. The cache of Jobs may be behind that of pods, so the Job is read from the server before.
// Thread: loop. Bounds: one release of a pod at a time; retries back off to 60 s. Source: KEP-2307.
#pragma once

#include "api/object/job.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::controllers {

class JobOrphans {
 public:
  JobOrphans(Shared shared, telemetry::Registry& metrics);
  JobOrphans(const JobOrphans&) = delete;
  JobOrphans& operator=(const JobOrphans&) = delete;

  /// Queues the release of a pod.
  void add(const client::ObjectKey& pod, Now now) { queue_.add(pod, now.mono); }

  /// Releases the pods that are due; called at the end of every step.
  void run(Now now);

  std::optional<Instant> next_due() const { return queue_.next_due(); }

 private:
  Shared shared_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
};

}  // namespace spillway::controllers
