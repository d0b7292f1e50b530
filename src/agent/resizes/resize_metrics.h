// Metrics of resizes, under upstream's names. Thread: loop. Labels are resources, reasons and triggers: bounded.
// Source: Kubernetes docs, "Kubernetes Metrics Reference"; KEP-1287.
#pragma once

#include "base/time.h"
#include "policy/containers/pod_resize.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <string_view>

namespace spillway::agent {

/// The event after which pending resizes are tried again.
enum class ResizeTrigger : std::uint8_t { kPodUpdated, kPodResized, kPodsRemoved, kPodTerminated, kPeriodic };

struct ResizesNow {
  std::int64_t deferred = 0;
  std::int64_t infeasible = 0;
  std::int64_t in_progress = 0;
};

class ResizeMetrics {
 public:
  /// `registry` may be null: nothing is counted.
  explicit ResizeMetrics(telemetry::Registry* registry) : registry_(registry) {}

  void count_request(const containers::PodResources& before, const containers::PodResources& wanted) const;
  void count_infeasible(std::string_view detail) const;
  void count_accepted(ResizeTrigger trigger) const;
  void record_end(Duration took, bool success) const;
  void set_present(const ResizesNow& now) const;

 private:
  telemetry::Registry* registry_;
};

}  // namespace spillway::agent
