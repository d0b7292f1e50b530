#include "controllers/workloads/job_metrics.h"

#include "policy/workloads/job_indexes.h"
#include "policy/workloads/job_pods.h"
#include "telemetry/histogram_bounds.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

using workloads::JobAction;

std::string_view mode_of(const api::Job& job) {
  return workloads::is_indexed(job) ? "Indexed" : "NonIndexed";
}

std::string_view text_of(JobAction action) {
  switch (action) {
    case JobAction::kReconciling:
      return "reconciling";
    case JobAction::kTracking:
      return "tracking";
    case JobAction::kPodsCreated:
      return "pods_created";
    case JobAction::kPodsDeleted:
      return "pods_deleted";
  }
  std::unreachable();
}

/// Buckets from 4 ms to 65 s.
std::vector<double> bounds_of_syncs() {
  return telemetry::exponential_bounds(0.004, 2, 15);
}

/// The number of indexes in the text that are below the number of completions.
std::int64_t indexes_in(const api::Job& job, std::string_view text) {
  return workloads::JobIndexes::parse(text, job.completions.value_or(0)).total();
}

}  // namespace

void JobMetrics::count_sync(const api::Job& job, JobAction action, Result result, Duration took) {
  const std::string_view said = result == Result::kSuccess ? "success" : "error";
  metrics_
      .counter("job_controller_job_syncs_total", "Syncs of Jobs",
               {{"completion_mode", mode_of(job)}, {"result", said}, {"action", text_of(action)}})
      .add();
  metrics_
      .histogram("job_controller_job_sync_duration_seconds",
                 "Duration of a sync of a Job, its writes included, in seconds", bounds_of_syncs(),
                 {{"completion_mode", mode_of(job)}, {"result", said}, {"action", text_of(action)}})
      .observe(std::chrono::duration<double>(took).count());
}

void JobMetrics::count_pods(std::string_view mode, std::string_view result, std::int64_t pods) {
  if (pods <= 0) return;
  metrics_
      .counter("job_controller_job_pods_finished_total", "Pods that have ended and are counted in the status of a Job",
               {{"completion_mode", mode}, {"result", result}})
      .add(static_cast<double>(pods));
}

void JobMetrics::count_indexes(const api::Job& job, std::string_view status, std::int64_t indexes) {
  if (indexes <= 0) return;
  metrics_
      .counter("job_controller_job_finished_indexes_total", "Indexes of Jobs that have ended",
               {{"status", status}, {"backoffLimit", job.backoff_limit_per_index ? "perIndex" : "global"}})
      .add(static_cast<double>(indexes));
}

void JobMetrics::count_written(const api::Job& job, const api::JobStatus& before, const api::JobStatus& after) {
  std::int64_t succeeded = after.succeeded - before.succeeded;
  if (workloads::is_indexed(job)) {
    // A Job that is made smaller forgets indexes; their pods have ended and count nevertheless.
    succeeded = indexes_in(job, after.completed_indexes) - indexes_in(job, before.completed_indexes);
    count_indexes(job, "succeeded", succeeded);
    if (job.backoff_limit_per_index) {
      count_indexes(
          job, "failed",
          indexes_in(job, after.failed_indexes.value_or("")) - indexes_in(job, before.failed_indexes.value_or("")));
    }
  }
  count_pods(mode_of(job), "succeeded", succeeded);
  count_pods(mode_of(job), "failed", after.failed - before.failed);
  count_end(job, before, after);
}

void JobMetrics::count_end(const api::Job& job, const api::JobStatus& before, const api::JobStatus& after) {
  for (const auto& [type, result] : {std::pair(workloads::kJobComplete, std::string_view("succeeded")),
                                     std::pair(workloads::kJobFailed, std::string_view("failed"))}) {
    const api::JobCondition* condition = workloads::true_condition(after, type);
    if (condition == nullptr || workloads::true_condition(before, type) != nullptr) continue;
    metrics_
        .counter("job_controller_jobs_finished_total", "Jobs that are over",
                 {{"completion_mode", mode_of(job)}, {"result", result}, {"reason", condition->reason}})
        .add();
  }
}

}  // namespace spillway::controllers
