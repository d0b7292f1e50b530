// One look at a Job: which pods come and go, what its status says before and after the pods that have ended lose their
// finalizer, and when to look again. Every pod is counted exactly once: its uid (of an Indexed success its index) is in
// the status before the finalizer goes, and in a counter after. The plan takes for granted that each step succeeds;
// whoever carries it out stops at the first one that does not and looks again. Thread: any (pure). Bounds: 500 pods are
// made, removed or counted in one look. Source: Kubernetes docs, "Jobs"; KEP-2307; spec "Scheduler and workloads", 14;
// vectors workloads/job_status.
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

/// Whether the cache shows everything that was asked for before; else nothing is made and nothing ends.
enum class JobCache { kBehind, kCurrent };

struct JobView {
  const api::Job& job;
  std::vector<PodPtr> pods;        // that it owns and selects, by name
  std::set<std::string> released;  // uids of pods that lost their finalizer, whatever the cache shows
  JobBackoff backoff;
  JobCache cache = JobCache::kCurrent;
};

struct JobPod {
  std::optional<std::int32_t> index;
  std::optional<std::int64_t> failures;  // of the index before it; with a limit per index only
  std::int64_t ignored_failures = 0;
};

struct JobEvent {
  std::string_view type;
  std::string reason;
  std::string message;
};

/// What a look does about the number of pods that run. kReconciling: nothing, as earlier creations and deletions are
/// not seen yet, or the Job ends or is deleted.
enum class JobAction { kReconciling, kTracking, kPodsCreated, kPodsDeleted };

/// In the order of the steps.
struct JobPlan {
  JobAction action = JobAction::kReconciling;
  std::vector<PodPtr> dropped;  // lose their finalizer, then are deleted: never counted
  std::vector<PodPtr> removed;  // deleted
  std::vector<JobPod> created;
  std::optional<api::JobStatus> counted;
  std::vector<JobEvent> events;  // with it
  std::vector<PodPtr> released;  // lose their finalizer
  std::optional<api::JobStatus> settled;
  std::vector<JobEvent> final_events;  // with it
  std::vector<Duration> look_again;
  std::optional<Duration> next_pod;  // until one is made again: failures hold it back
  std::optional<Duration> deadline;  // until it fails for having been active too long
  JobBackoff backoff;                // holds once `counted` is written
};

/// The Job is not finished, is nobody else's, and has a completion mode that is known.
JobPlan plan_job(const JobView& view, WallTime now);

/// The pod as it is created, without owner.
api::Json job_pod_document(const api::Job& job, const JobPod& pod);

}  // namespace spillway::workloads
