// One sync of a Job: the pods to create and delete, its status before and after the ended pods lose their finalizer,
// and the time of the next sync. Every pod is counted exactly once: its UID (for an Indexed success its index) is in
// the status before the finalizer is removed, and in a counter after. The plan assumes that each step succeeds; its
// executor stops at the first failure and requeues the Job. Thread: any (pure). Bounds: 500 pods are created, deleted
// or counted in one sync. Source: Kubernetes docs, "Jobs"; KEP-2307; spec "Scheduler and workloads", 14; vectors
// workloads/job_status.
#pragma once

#include "api/json/json.h"
#include "api/object/job.h"
#include "policy/workloads/job_pods.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::workloads {

/// kBehind: the cache does not show all earlier creations and deletions yet, so that no pod is created and the Job
/// cannot end.
enum class JobCache { kBehind, kCurrent };

struct JobView {
  const api::Job& job;
  std::vector<PodPtr> pods;        // pods that the Job owns and selects, by name
  std::set<std::string> released;  // uids of pods that lost their finalizer, whatever the cache shows
  JobBackoff backoff;
  JobCache cache = JobCache::kCurrent;
};

struct JobPod {
  std::optional<std::int32_t> index;
  std::optional<std::int64_t> failures;  // the index's failures before this pod; with a limit per index only
  std::int64_t ignored_failures = 0;
};

struct JobEvent {
  std::string_view type;
  std::string reason;
  std::string message;
};

/// The change of the number of running pods in a sync. kReconciling: none, as earlier creations and deletions are not
/// seen yet, or the Job ends or is deleted.
enum class JobAction { kReconciling, kTracking, kPodsCreated, kPodsDeleted };

/// Changes in the order of their steps.
struct JobPlan {
  JobAction action = JobAction::kReconciling;
  std::vector<PodPtr> dropped;  // lose their finalizer, then are deleted: never counted
  std::vector<PodPtr> removed;  // deleted
  std::vector<JobPod> created;
  std::optional<api::JobStatus> counted;
  std::vector<JobEvent> events;  // recorded with `counted`
  std::vector<PodPtr> released;  // lose their finalizer, after they were counted
  std::optional<api::JobStatus> final_status;
  std::vector<JobEvent> final_events;  // recorded with `final_status`
  std::vector<Duration> requeue_after;
  std::optional<Duration> next_pod;  // wait until a pod is created again, after failures
  std::optional<Duration> deadline;  // time until the Job fails because of activeDeadlineSeconds
  JobBackoff backoff;                // holds once `counted` is written
};

/// The Job must not be finished, must not be managed by another controller, and must have a known completion mode.
JobPlan plan_job(const JobView& view, WallTime now);

/// The document of a pod, without owner.
api::Json job_pod_document(const api::Job& job, const JobPod& pod);

}  // namespace spillway::workloads
