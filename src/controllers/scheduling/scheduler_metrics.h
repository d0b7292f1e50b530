// What a scheduler counts, by the names of kube-scheduler. Thread: loop. Source: Kubernetes docs, "Kubernetes Metrics
// Reference".
// Durations are those of the loop: of an attempt from its turn until the binding is answered.
// Metrics: scheduler_pending_pods{queue}, scheduler_schedule_attempts_total{profile,result},
// scheduler_scheduling_attempt_duration_seconds{profile,result}, scheduler_pod_scheduling_attempts,
// scheduler_pod_scheduling_sli_duration_seconds{attempts}, scheduler_scheduler_cache_size{type},
// scheduler_goroutines{operation}.
#pragma once

#include "base/time.h"
#include "policy/scheduling/pod_queue.h"
#include "telemetry/metrics.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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

  /// What is known of the cluster, and what is under way.
  struct Held {
    std::size_t nodes = 0;
    std::size_t pods = 0;          // that count on a node
    std::size_t assumed_pods = 0;  // of these, those that no node has yet
    std::size_t bindings = 0;
  };

  enum class Result { kScheduled, kUnschedulable, kError };

  SchedulerMetrics(telemetry::Registry& metrics, std::span<const std::string> profiles);

  void show(const Pending& pending, const Held& held);
  /// `profile`: one of them; `course`: of the pod, nullopt: it is not known any more.
  void count_attempt(std::string_view profile, Result result, const std::optional<scheduling::PodQueue::Course>& course,
                     Instant now);

 private:
  struct Attempts {
    telemetry::Counter number;
    telemetry::Histogram duration;
  };

  static constexpr std::size_t kAttemptsTold = 15;  // "15+" and above in one

  telemetry::Registry& metrics_;

  telemetry::Gauge active_;
  telemetry::Gauge backoff_;
  telemetry::Gauge unschedulable_;
  telemetry::Gauge gated_;
  telemetry::Gauge nodes_;
  telemetry::Gauge pods_;
  telemetry::Gauge assumed_pods_;
  telemetry::Gauge bindings_;
  telemetry::Histogram attempts_of_pods_;
  std::array<std::optional<telemetry::Histogram>, kAttemptsTold> waited_;  // by attempts, from 1; made when needed
  std::map<std::string, std::map<Result, Attempts>, std::less<>> attempts_;
};

}  // namespace spillway::controllers
