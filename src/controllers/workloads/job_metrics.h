// Metrics of the controller of Jobs, by the names of kube-controller-manager. A sync lasts until its last write is
// answered, by the loop's clock. Thread: loop. Bounds: labels are modes of completion, results and reasons that this
// program knows. Source: Kubernetes docs, "Kubernetes Metrics Reference".
// Metrics: job_controller_job_syncs_total{completion_mode,result,action},
// job_controller_job_sync_duration_seconds{completion_mode,result,action},
// job_controller_jobs_finished_total{completion_mode,result,reason},
// job_controller_job_pods_finished_total{completion_mode,result},
// job_controller_job_finished_indexes_total{status,backoffLimit}.
#pragma once

#include "api/object/job.h"
#include "base/time.h"
#include "policy/workloads/job_plan.h"
#include "telemetry/metrics.h"

#include <cstdint>
#include <string_view>

namespace spillway::controllers {

class JobMetrics {
 public:
  enum class Result { kSuccess, kError };

  explicit JobMetrics(telemetry::Registry& metrics) : metrics_(metrics) {}

  JobMetrics(const JobMetrics&) = delete;
  JobMetrics& operator=(const JobMetrics&) = delete;

  /// Counts a sync that has ended.
  void count_sync(const api::Job& job, workloads::JobAction action, Result result, Duration took);
  /// Counts after a write of the status from `before` to `after`: the pods and indexes that are newly counted, and the
  /// Job once it is over.
  void count_written(const api::Job& job, const api::JobStatus& before, const api::JobStatus& after);

 private:
  void count_pods(std::string_view mode, std::string_view result, std::int64_t pods);
  void count_indexes(const api::Job& job, std::string_view status, std::int64_t indexes);
  void count_end(const api::Job& job, const api::JobStatus& before, const api::JobStatus& after);

  telemetry::Registry& metrics_;
};

}  // namespace spillway::controllers
