#include "controllers/scheduling/scheduler_metrics.h"

namespace spillway::controllers {

SchedulerMetrics::SchedulerMetrics(telemetry::Registry& metrics, std::span<const std::string> profiles) {
  const auto queue = [&metrics](std::string_view name) {
    return metrics.gauge("scheduler_pending_pods", "Number of pending pods, by the queue type",
                         {{"queue", std::string(name)}});
  };
  active_ = queue("active");
  backoff_ = queue("backoff");
  unschedulable_ = queue("unschedulable");
  gated_ = queue("gated");
  for (const std::string& profile : profiles) {
    const auto counter = [&](std::string_view result) {
      return metrics.counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result",
                             {{"profile", profile}, {"result", std::string(result)}});
    };
    attempts_[profile] = {counter("scheduled"), counter("unschedulable"), counter("error")};
  }
}

void SchedulerMetrics::show(const Pending& pending) {
  active_.set(static_cast<double>(pending.active));
  backoff_.set(static_cast<double>(pending.backoff));
  unschedulable_.set(static_cast<double>(pending.unschedulable));
  gated_.set(static_cast<double>(pending.gated));
}

void SchedulerMetrics::count_attempt(std::string_view profile, Result result) {
  const auto found = attempts_.find(profile);
  if (found == attempts_.end()) return;
  switch (result) {
    case Result::kScheduled:
      return found->second.scheduled.add();
    case Result::kUnschedulable:
      return found->second.unschedulable.add();
    case Result::kError:
      return found->second.error.add();
  }
}

}  // namespace spillway::controllers
