#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/codec/json_codec_template.h"
#include "api/object/job.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<ExitCodesPattern> auto& pattern) {
  v.field("containerName", pattern.container_name);
  v.field("operator", pattern.op);
  v.field("values", pattern.values);
}

template <typename V>
void describe(V& v, Is<PodConditionPattern> auto& pattern) {
  v.field("type", pattern.type);
  v.field("status", pattern.status);
}

template <typename V>
void describe(V& v, Is<PodFailureRule> auto& rule) {
  v.field("action", rule.action);
  v.object("onExitCodes", rule.exit_codes);
  v.list("onPodConditions", rule.conditions);
}

template <typename V>
void describe(V& v, Is<PodFailurePolicy> auto& policy) {
  v.list("rules", policy.rules);
}

template <typename V>
void describe(V& v, Is<SuccessRule> auto& rule) {
  v.field("succeededIndexes", rule.succeeded_indexes);
  v.field("succeededCount", rule.succeeded_count);
}

template <typename V>
void describe(V& v, Is<SuccessPolicy> auto& policy) {
  v.list("rules", policy.rules);
}

template <typename V>
void describe(V& v, Is<JobCondition> auto& condition) {
  v.kept("type", condition.type);
  v.field("status", condition.status);
  v.field("lastProbeTime", condition.last_probe_time);
  v.field("lastTransitionTime", condition.last_transition_time);
  v.field("reason", condition.reason);
  v.field("message", condition.message);
}

template <typename V>
void describe(V& v, Is<UncountedPods> auto& pods) {
  v.field("succeeded", pods.succeeded);
  v.field("failed", pods.failed);
}

template <typename V>
void describe(V& v, Is<JobStatus> auto& status) {
  v.list("conditions", status.conditions, "type", &JobCondition::type);
  v.field("startTime", status.start_time);
  v.field("completionTime", status.completion_time);
  v.field("active", status.active);
  v.field("succeeded", status.succeeded);
  v.field("failed", status.failed);
  v.field("completedIndexes", status.completed_indexes);
  v.field("failedIndexes", status.failed_indexes);
  v.object("uncountedTerminatedPods", status.uncounted);
  v.field("ready", status.ready);
  v.field("terminating", status.terminating);
}

template <typename V>
void describe(V& v, Is<Job> auto& job) {
  v.type_meta(Job::kApiVersion, Job::kKind);
  v.object("metadata", job.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("parallelism", job.parallelism);
    spec.field("completions", job.completions);
    spec.field("activeDeadlineSeconds", job.active_deadline_seconds);
    spec.field("backoffLimit", job.backoff_limit);
    spec.field("backoffLimitPerIndex", job.backoff_limit_per_index);
    spec.field("maxFailedIndexes", job.max_failed_indexes);
    spec.field("ttlSecondsAfterFinished", job.ttl_seconds_after_finished);
    spec.field("completionMode", job.completion_mode);
    spec.field("suspend", job.suspend);
    spec.field("podReplacementPolicy", job.pod_replacement_policy);
    spec.field("managedBy", job.managed_by);
    spec.object("podFailurePolicy", job.pod_failure_policy);
    spec.object("successPolicy", job.success_policy);
    spec.selector("selector", job.selector);
    spec.object("template", job.pod_template);
  });
  v.object("status", job.status);
}

template <typename V>
void describe(V& v, Is<CronJobStatus> auto& status) {
  v.list("active", status.active);
  v.field("lastScheduleTime", status.last_schedule_time);
  v.field("lastSuccessfulTime", status.last_successful_time);
}

template <typename V>
void describe(V& v, Is<CronJob> auto& cron) {
  v.type_meta(CronJob::kApiVersion, CronJob::kKind);
  v.object("metadata", cron.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("schedule", cron.schedule);
    spec.field("timeZone", cron.time_zone);
    spec.field("startingDeadlineSeconds", cron.starting_deadline_seconds);
    spec.field("concurrencyPolicy", cron.concurrency_policy);
    spec.field("suspend", cron.suspend);
    spec.field("successfulJobsHistoryLimit", cron.successful_jobs_history_limit);
    spec.field("failedJobsHistoryLimit", cron.failed_jobs_history_limit);
    spec.nested("jobTemplate", [&](V& job) {
      job.nested("metadata", [&](V& metadata) {
        metadata.field("labels", cron.job_labels);
        metadata.field("annotations", cron.job_annotations);
      });
      job.field("spec", cron.job_spec);
    });
  });
  v.object("status", cron.status);
}

template struct Codec<Job>;
template struct Codec<CronJob>;

}  // namespace spillway::api
