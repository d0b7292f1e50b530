#include "controllers/scheduling/scheduler_metrics.h"

#include "telemetry/histogram_bounds.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

using telemetry::exponential_bounds;

constexpr std::array<std::pair<SchedulerMetrics::Result, std::string_view>, 3> kResults{
    {{SchedulerMetrics::Result::kScheduled, "scheduled"},
     {SchedulerMetrics::Result::kUnschedulable, "unschedulable"},
     {SchedulerMetrics::Result::kError, "error"}}};

}  // namespace

SchedulerMetrics::SchedulerMetrics(telemetry::Registry& metrics, std::span<const std::string> profiles)
    : metrics_(metrics) {
  const auto queue = [&metrics](std::string_view name) {
    return metrics.gauge("scheduler_pending_pods", "Number of pending pods, by the queue type",
                         {{"queue", std::string(name)}});
  };
  active_ = queue("active");
  backoff_ = queue("backoff");
  unschedulable_ = queue("unschedulable");
  gated_ = queue("gated");
  const auto size = [&metrics](std::string_view type) {
    return metrics.gauge("scheduler_scheduler_cache_size",
                         "Number of nodes, pods, and assumed (not yet bound) pods that are known", {{"type", type}});
  };
  nodes_ = size("nodes");
  pods_ = size("pods");
  assumed_pods_ = size("assumed_pods");
  bindings_ = metrics.gauge("scheduler_goroutines", "Number of pieces of work beside the main loop, by operation",
                            {{"operation", "binding"}});
  attempts_of_pods_ = metrics.histogram("scheduler_pod_scheduling_attempts",
                                        "Number of attempts until a pod was scheduled", exponential_bounds(1, 2, 5));
  algorithm_ =
      metrics.histogram("scheduler_scheduling_algorithm_duration_seconds",
                        "Duration of finding a node for a pod, or none, in seconds", exponential_bounds(0.001, 2, 15));
  for (const std::string& profile : profiles) {
    for (const auto& [result, name] : kResults) {
      attempts_[profile][result] = {
          metrics.counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result",
                          {{"profile", profile}, {"result", name}}),
          metrics.histogram("scheduler_scheduling_attempt_duration_seconds",
                            "Duration of an attempt to schedule a pod, its binding included, in seconds",
                            exponential_bounds(0.001, 2, 15), {{"profile", profile}, {"result", name}})};
    }
  }
}

void SchedulerMetrics::show(const Pending& pending, const Held& held, const scheduling::PodQueue& queue) {
  active_.set(static_cast<double>(pending.active));
  backoff_.set(static_cast<double>(pending.backoff));
  unschedulable_.set(static_cast<double>(pending.unschedulable));
  gated_.set(static_cast<double>(pending.gated));
  nodes_.set(static_cast<double>(held.nodes));
  pods_.set(static_cast<double>(held.pods));
  assumed_pods_.set(static_cast<double>(held.assumed_pods));
  bindings_.set(static_cast<double>(held.bindings));
  show_refusals(queue);
  show_incoming(queue);
}

void SchedulerMetrics::show_refusals(const scheduling::PodQueue& queue) {
  const auto& counts = queue.refusals();
  for (auto& [key, gauge] : refusals_) {
    if (!counts.contains(key)) gauge.set(0);
  }
  for (const auto& [key, pods] : counts) {
    const auto& [profile, plugin] = key;
    auto known = refusals_.find(key);
    if (known == refusals_.end()) {
      known = refusals_
                  .emplace(key, metrics_.gauge(
                                    "scheduler_unschedulable_pods",
                                    "Number of pods that were refused and not tried since, by each plug-in "
                                    "that refused them",
                                    {{"plugin", std::string(scheduling::to_string(plugin))}, {"profile", profile}}))
                  .first;
    }
    known->second.set(static_cast<double>(pods));
  }
}

void SchedulerMetrics::show_incoming(const scheduling::PodQueue& queue) {
  for (const auto& [key, pods] : queue.incoming()) {
    Incoming& shown = incoming_[key];
    if (shown.counted == 0) {
      shown.counter =
          metrics_.counter("scheduler_queue_incoming_pods_total", "Number of pods added to a queue, by queue and event",
                           {{"queue", std::string(key.first)}, {"event", std::string(key.second)}});
    }
    if (pods != shown.counted) shown.counter.add(static_cast<double>(pods - shown.counted));
    shown.counted = pods;
  }
}

void SchedulerMetrics::record_algorithm(Duration took) {
  algorithm_.observe(std::chrono::duration<double>(took).count());
}

void SchedulerMetrics::count_attempt(std::string_view profile, Result result,
                                     const std::optional<scheduling::PodQueue::Course>& course, Instant now) {
  const auto found = attempts_.find(profile);
  if (found == attempts_.end()) return;
  Attempts& attempts = found->second.at(result);
  attempts.number.add();
  if (!course) return;
  attempts.duration.observe(std::chrono::duration<double>(now - course->tried_since).count());
  if (result != Result::kScheduled) return;
  attempts_of_pods_.observe(static_cast<double>(course->attempts));
  const auto counted = std::clamp<std::size_t>(static_cast<std::size_t>(course->attempts), 1, kAttemptsShown);
  std::optional<telemetry::Histogram>& waited = waited_[counted - 1];
  if (!waited) {
    const std::string label = std::to_string(counted) + (counted == kAttemptsShown ? "+" : "");
    waited = metrics_.histogram("scheduler_pod_scheduling_sli_duration_seconds",
                                "Time from when a pod first waits for its turn until it is scheduled, in seconds, by "
                                "the number of attempts",
                                exponential_bounds(0.01, 2, 20), {{"attempts", label}});
  }
  waited->observe(std::chrono::duration<double>(now - course->waits_since).count());
}

}  // namespace spillway::controllers
