// A pod's part in its Job: the index it works on, its failure, and its end; and how long a Job waits after failures.
// Thread: any (pure). Source: Kubernetes docs, "Jobs", "Pod backoff failure policy"; spec "Scheduler and workloads",
// 14; vectors workloads/job_status.
#pragma once

#include "api/object/job.h"
#include "api/object/pod.h"
#include "policy/workloads/pod_state.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::workloads {

/// Kept on a pod until the Job has counted it.
inline constexpr std::string_view kJobTracking = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
inline constexpr std::string_view kIndexIgnoredFailures = "batch.kubernetes.io/job-index-ignored-failure-count";
inline constexpr std::string_view kJobController = "kubernetes.io/job-controller";

inline constexpr std::string_view kJobComplete = "Complete";
inline constexpr std::string_view kJobFailed = "Failed";
inline constexpr std::string_view kJobSuspended = "Suspended";
inline constexpr std::string_view kJobFailureTarget = "FailureTarget";
inline constexpr std::string_view kJobSuccessCriteriaMet = "SuccessCriteriaMet";

/// The longest remaining time that is computed: a century, which nanoseconds can hold.
inline constexpr WallTime::duration kTimeLeftMax = std::chrono::hours(24 * 365 * 100);

/// Complete or Failed.
bool is_finished(const api::Job& job);
/// The remaining life of a finished Job; nullopt: it is not finished, is being deleted, or has no time to live.
std::optional<Duration> time_to_live(const api::Job& job, WallTime now);
/// The condition of that type if it is True.
const api::JobCondition* true_condition(const api::JobStatus& status, std::string_view type);
bool is_indexed(const api::Job& job);
/// True if only failed pods are replaced: a pod that is being deleted may still succeed.
bool replaces_only_failed(const api::Job& job);
/// Left to another controller.
bool is_managed_elsewhere(const api::Job& job);

bool is_tracked(const api::Pod& pod);
/// nullopt: none, or none that can be read.
std::optional<std::int32_t> completion_index(const api::Pod& pod);
bool is_failed(const api::Job& job, const api::Pod& pod);
/// Being deleted, and has not ended yet.
bool is_terminating(const api::Pod& pod);
/// Failures of the index before this pod, and those of them that count.
std::int64_t index_failures(const api::Pod& pod);
std::int64_t ignored_index_failures(const api::Pod& pod);

/// The time at which the pod ended, or an estimate.
WallTime finished_at(const api::Pod& pod);

struct JobBackoff {
  std::int64_t failures = 0;  // since the last success
  WallTime last_failure{};    // the end of the last of them; of no meaning without failures

  friend bool operator==(const JobBackoff&, const JobBackoff&) = default;
};

/// The back-off that results from these ended pods.
JobBackoff backoff_after(const JobBackoff& before, const std::vector<PodPtr>& succeeded,
                         const std::vector<PodPtr>& failed);
/// Zero: no wait. 10 s after the first failure, twice as long each time, at most 10 min.
Duration backoff_left(const JobBackoff& backoff, WallTime now);

}  // namespace spillway::workloads
