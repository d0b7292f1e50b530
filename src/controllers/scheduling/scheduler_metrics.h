// Metrics of a scheduler, by the names of kube-scheduler. Thread: loop. Source: Kubernetes docs, "Kubernetes Metrics
// Reference". Durations are by the loop's clock: an attempt lasts from its turn until the binding is answered. The
// algorithm's duration is by the machine's clock.
// Metrics: scheduler_pending_pods{queue}, scheduler_schedule_attempts_total{profile,result},
// scheduler_scheduling_attempt_duration_seconds{profile,result}, scheduler_pod_scheduling_attempts,
// scheduler_pod_scheduling_sli_duration_seconds{attempts}, scheduler_scheduler_cache_size{type},
// scheduler_goroutines{operation}, scheduler_unschedulable_pods{plugin,profile},
// scheduler_queue_incoming_pods_total{queue,event}, scheduler_scheduling_algorithm_duration_seconds.
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
#include <utility>

namespace spillway::controllers {

class SchedulerMetrics {
 public:
  /// Number of pods without a node, by the queue in which they are.
  struct Pending {
    std::size_t active = 0;
    std::size_t backoff = 0;
    std::size_t unschedulable = 0;
    std::size_t gated = 0;
  };

  /// The size of the scheduler's caches, and its open work.
  struct Held {
    std::size_t nodes = 0;
    std::size_t pods = 0;          // pods that count on a node
    std::size_t assumed_pods = 0;  // the part of `pods` that is not bound yet
    std::size_t bindings = 0;      // pods that are being bound, or wait for their volumes before
  };

  enum class Result { kScheduled, kUnschedulable, kError };

  SchedulerMetrics(telemetry::Registry& metrics, std::span<const std::string> profiles);

  void show(const Pending& pending, const Held& held, const scheduling::PodQueue& queue);
  /// Records how long the search for a node took, with or without a result.
  void record_algorithm(Duration took);
  /// `profile`: name of a profile; `course`: timings of the pod, nullopt: unknown.
  void count_attempt(std::string_view profile, Result result, const std::optional<scheduling::PodQueue::Course>& course,
                     Instant now);

 private:
  struct Attempts {
    telemetry::Counter number;
    telemetry::Histogram duration;
  };

  void show_refusals(const scheduling::PodQueue& queue);
  void show_incoming(const scheduling::PodQueue& queue);

  static constexpr std::size_t kAttemptsShown = 15;  // 15 attempts and more share the label "15+"

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
  telemetry::Histogram algorithm_;
  std::map<std::pair<std::string, scheduling::Filter>, telemetry::Gauge> refusals_;  // made when needed

  struct Incoming {
    telemetry::Counter counter;
    std::uint64_t counted = 0;
  };

  std::map<std::pair<std::string_view, std::string_view>, Incoming> incoming_;  // by queue and event
  std::array<std::optional<telemetry::Histogram>, kAttemptsShown> waited_;      // by attempts, from 1; made when needed
  std::map<std::string, std::map<Result, Attempts>, std::less<>> attempts_;
};

}  // namespace spillway::controllers
