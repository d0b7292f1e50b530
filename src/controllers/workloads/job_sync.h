// One sync of a Job, from its plan to its final status. The order of its steps is at the top of job_sync.cc: a pod
// is counted in the status before it loses its finalizer, so that each is counted exactly once. The first step that
// fails ends the sync; the next one begins with the status of that time. Thread: loop. Bounds: 500 calls under way.
// Source: Kubernetes docs, "Jobs"; KEP-2307; spec "Scheduler and workloads", 14.
#pragma once

#include "api/object/job.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/step_run.h"
#include "controllers/workloads/expectations.h"
#include "controllers/workloads/job_memory.h"
#include "controllers/workloads/job_metrics.h"
#include "policy/workloads/job_plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

/// The parts of the controller that all syncs of Jobs share.
struct JobTools {
  Shared shared;
  ExpectationTable& expectations;
  JobMemories& memories;
  JobMetrics& metrics;
  client::WorkQueue& queue;
};

std::string job_path(const api::ObjectMeta& neighbour, std::string_view name, std::string_view subresource = {});

/// Takes the finalizer of Jobs from this very pod.
api::Json release_finalizer_patch(const api::Pod& pod);

enum class JobStep : std::uint8_t {
  kDeletion,     // delete pods
  kCreation,     // create a batch of pods; back to kCreation, with twice as many, until all have been created
  kCounting,     // write the status that lists the pods that have ended
  kRelease,      // remove the finalizer of the counted pods
  kFinalStatus,  // write the status that counts them
  kEnd,          // requeue the Job if the plan says so, or if a creation has failed
};

class JobSync final : public StepRun<JobSync, JobStep> {
 public:
  using JobPtr = std::shared_ptr<const api::Job>;
  using Step = JobStep;

  /// The parts of `tools` must outlive the sync.
  JobSync(const JobTools& tools, JobPtr job, workloads::JobPlan plan, Now now);

 private:
  Next run(Step step, Now now) override;

  Next delete_pods();
  void drop(const PodPtr& pod);
  Next on_dropped(const PodPtr& pod, const Result<api::Json>& outcome, Now now);
  void remove(const PodPtr& pod);
  Next on_deleted(const PodPtr& pod, const Result<api::Json>& outcome, Now now);
  Next create_batch();
  Next on_created(const Result<api::Json>& outcome, Now now);
  Next count_ended(Now now);
  Next on_counted(const Result<api::Json>& outcome, Now now);
  Next release_pods();
  Next on_released(const PodPtr& pod, const Result<api::Json>& outcome, Now now);
  Next write_final_status();
  Next on_final_status(const Result<api::Json>& outcome, Now now);
  Next end(Now now);

  /// One call of the present step has ended: the sync continues when all have, and ends if one has failed.
  Next on_answered(const Outcome& outcome, Now now);
  void write_status(const api::JobStatus& status, client::ApiClient::Done done);
  Next on_status_written(const api::JobStatus& status, const std::vector<workloads::JobEvent>& events,
                         const Result<api::Json>& outcome, Now now);
  Next give_up(const Error& error, Now now);

  ExpectationTable::Requeue requeue() const;
  void record(client::EventType type, std::string_view reason, const std::string& message, Now now);

  const std::string& uid() const { return job_->metadata.uid; }

  const JobTools tools_;
  JobPtr job_;
  std::string key_;
  workloads::JobPlan plan_;
  Instant begin_;
  std::string version_;     // the Job's, as last written
  api::JobStatus written_;  // status after the last write
  std::size_t open_ = 0;    // calls of the present step without an answer
  std::optional<Error> failure_;
  std::size_t requested_ = 0;  // pods of plan_.created
  std::size_t batch_ = 1;
  std::int32_t missing_ = 0;  // pods of plan_.created that could not be created
};

}  // namespace spillway::controllers
