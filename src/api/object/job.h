// batch/v1 Job and CronJob as their controllers see them. Thread: any. Source: Kubernetes API reference, "Job",
// "CronJob".
#pragma once

#include "api/json/json.h"
#include "api/object/event.h"
#include "api/object/meta.h"
#include "api/object/selector.h"
#include "api/object/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::api {

/// onExitCodes: codes other than 0, of one container or of any.
struct ExitCodesPattern {
  std::optional<std::string> container_name;
  std::string op;  // In, NotIn
  std::vector<std::int64_t> values;

  friend bool operator==(const ExitCodesPattern&, const ExitCodesPattern&) = default;
};

struct PodConditionPattern {
  std::string type;
  std::string status;

  friend bool operator==(const PodConditionPattern&, const PodConditionPattern&) = default;
};

struct PodFailureRule {
  std::string action;  // Ignore, Count, FailIndex, FailJob
  std::optional<ExitCodesPattern> exit_codes;
  std::vector<PodConditionPattern> conditions;

  friend bool operator==(const PodFailureRule&, const PodFailureRule&) = default;
};

struct PodFailurePolicy {
  std::vector<PodFailureRule> rules;

  friend bool operator==(const PodFailurePolicy&, const PodFailurePolicy&) = default;
};

struct SuccessRule {
  std::optional<std::string> succeeded_indexes;
  std::optional<std::int32_t> succeeded_count;

  friend bool operator==(const SuccessRule&, const SuccessRule&) = default;
};

struct SuccessPolicy {
  std::vector<SuccessRule> rules;

  friend bool operator==(const SuccessPolicy&, const SuccessPolicy&) = default;
};

struct JobCondition {
  std::string type;
  std::string status;
  std::optional<WallTime> last_probe_time;
  std::optional<WallTime> last_transition_time;
  std::string reason;
  std::string message;

  friend bool operator==(const JobCondition&, const JobCondition&) = default;
};

/// Uids of pods that have ended, are not in the counters yet and may have lost their finalizer.
struct UncountedPods {
  std::vector<std::string> succeeded;
  std::vector<std::string> failed;

  friend bool operator==(const UncountedPods&, const UncountedPods&) = default;
};

struct JobStatus {
  std::vector<JobCondition> conditions;
  std::optional<WallTime> start_time;
  std::optional<WallTime> completion_time;
  std::int32_t active = 0;
  std::int32_t succeeded = 0;
  std::int32_t failed = 0;
  std::string completed_indexes;
  std::optional<std::string> failed_indexes;
  std::optional<UncountedPods> uncounted;
  std::optional<std::int32_t> ready;
  std::optional<std::int32_t> terminating;

  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

struct Job {
  static constexpr std::string_view kKind = "Job";
  static constexpr std::string_view kApiVersion = "batch/v1";
  ObjectMeta metadata;
  std::optional<std::int32_t> parallelism;
  std::optional<std::int32_t> completions;
  std::optional<std::int64_t> active_deadline_seconds;
  std::optional<std::int32_t> backoff_limit;
  std::optional<std::int32_t> backoff_limit_per_index;
  std::optional<std::int32_t> max_failed_indexes;
  std::optional<std::int32_t> ttl_seconds_after_finished;
  std::string completion_mode;  // NonIndexed, Indexed
  bool suspend = false;
  std::string pod_replacement_policy;  // TerminatingOrFailed, Failed
  std::optional<std::string> managed_by;
  std::optional<PodFailurePolicy> pod_failure_policy;
  std::optional<SuccessPolicy> success_policy;
  LabelSelector selector;
  PodTemplate pod_template;
  JobStatus status;

  friend bool operator==(const Job&, const Job&) = default;
};

struct CronJobStatus {
  std::vector<ObjectReference> active;
  std::optional<WallTime> last_schedule_time;
  std::optional<WallTime> last_successful_time;

  friend bool operator==(const CronJobStatus&, const CronJobStatus&) = default;
};

struct CronJob {
  static constexpr std::string_view kKind = "CronJob";
  static constexpr std::string_view kApiVersion = "batch/v1";
  ObjectMeta metadata;
  std::string schedule;
  std::optional<std::string> time_zone;
  std::optional<std::int64_t> starting_deadline_seconds;
  std::string concurrency_policy;  // Allow, Forbid, Replace
  bool suspend = false;
  std::optional<std::int32_t> successful_jobs_history_limit;
  std::optional<std::int32_t> failed_jobs_history_limit;
  StringMap job_labels;       // spec.jobTemplate.metadata
  StringMap job_annotations;  // spec.jobTemplate.metadata
  Json job_spec;              // spec.jobTemplate.spec, whole
  CronJobStatus status;

  friend bool operator==(const CronJob&, const CronJob&) = default;
};

}  // namespace spillway::api
