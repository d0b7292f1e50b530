#include "agent/pod_state/pod_timers.h"

#include <utility>

namespace spillway::agent {

PodTimers::PodTimers(client::ApiClient& api, PodTable& pods, Due on_retry, Due on_deadline)
    : api_(api), pods_(pods), on_retry_(std::move(on_retry)), on_deadline_(std::move(on_deadline)) {}

void PodTimers::arm_retry(PodWorker& worker, Instant due) {
  if (worker.retry_timer && worker.retry_due && *worker.retry_due <= due) return;
  if (worker.retry_timer) api_.cancel(*worker.retry_timer);
  worker.retry_due = due;
  worker.retry_timer = api_.at(due, [this, uid = worker.uid()](Now now) {
    PodWorker* again = pods_.find(uid);
    if (again == nullptr) return;
    again->retry_timer.reset();
    if (again->phase == WorkerPhase::kSyncing) on_retry_(*again, now);
  });
}

void PodTimers::arm_deadline(PodWorker& worker) {
  const std::optional<Instant> due = active_deadline(*worker.pod, worker.active_since);
  if (worker.deadline == due) return;
  if (worker.deadline_timer) api_.cancel(*std::exchange(worker.deadline_timer, std::nullopt));
  worker.deadline = due;
  if (!due) return;
  worker.deadline_timer = api_.at(*due, [this, uid = worker.uid()](Now now) {
    PodWorker* again = pods_.find(uid);
    if (again == nullptr) return;
    again->deadline_timer.reset();
    if (again->phase == WorkerPhase::kSyncing) on_deadline_(*again, now);
  });
}

void PodTimers::cancel(PodWorker& worker) {
  for (auto* timer : {&worker.retry_timer, &worker.deadline_timer}) {
    if (*timer) api_.cancel(*std::exchange(*timer, std::nullopt));
  }
}

}  // namespace spillway::agent
