// What a scheduler counts, by the names of kube-scheduler. Thread: loop. Source: Kubernetes docs, "Kubernetes Metrics
// Reference".
// Metrics: scheduler_pending_pods{queue}, scheduler_schedule_attempts_total{profile,result}.
#pragma once

#include "telemetry/metrics.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace spillway::controllers {

class SchedulerMetrics {
 public:
  /// Pods without a node, by what they wait for.
  struct Pending {
    std::size_t active = 0;
    std::size_t backoff = 0;
    std::size_t unschedulable = 0;
    std::size_t gated = 0;
  };

  enum class Result { kScheduled, kUnschedulable, kError };

  SchedulerMetrics(telemetry::Registry& metrics, std::span<const std::string> profiles);

  void show(const Pending& pending);
  /// `profile`: one of them.
  void count_attempt(std::string_view profile, Result result);

 private:
  struct Attempts {
    telemetry::Counter scheduled;
    telemetry::Counter unschedulable;
    telemetry::Counter error;
  };

  telemetry::Gauge active_;
  telemetry::Gauge backoff_;
  telemetry::Gauge unschedulable_;
  telemetry::Gauge gated_;
  std::map<std::string, Attempts, std::less<>> attempts_;
};

}  // namespace spillway::controllers
