#include "controllers/workloads/job_orphans.h"

#include "api/codec/codec.h"
#include "api/object/kind_id.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/step_run.h"
#include "controllers/workloads/job_sync.h"
#include "policy/workloads/job_pods.h"

#include <array>
#include <memory>
#include <utility>

namespace spillway::controllers {

enum class OrphanStep : std::uint8_t {
  kJob,      // read the Job that owns the pod; end if it counts the pod
  kRelease,  // take the finalizer from the pod
};

/// Removes the finalizer of one pod, step by step.
class OrphanRelease final : public StepRun<OrphanRelease, OrphanStep> {
 public:
  using Step = OrphanStep;

  /// `queue` must outlive the release; `pod`: a key taken from that queue.
  OrphanRelease(Shared shared, client::WorkQueue& queue, client::ObjectKey pod);

 private:
  Next run(Step step, Now now) override;
  Next read_job(Now now);
  Next on_job(const Result<api::Json>& outcome, Now now);
  Next release();
  Next on_released(const Result<api::Json>& outcome, Now now);
  Next end(const Outcome& outcome, Now now);

  Shared shared_;
  client::WorkQueue& queue_;
  client::ObjectKey key_;
  PodPtr pod_;
};

namespace {

constexpr std::array kOrphanSteps = {OrphanStep::kJob, OrphanStep::kRelease};

bool is_job_reference(const api::OwnerReference* owner) {
  return owner != nullptr && api::kind_of(*owner) == api::kind_of<api::Job>();
}

}  // namespace

JobOrphans::JobOrphans(Shared shared, telemetry::Registry& metrics)
    : shared_(shared), queue_metrics_(metrics, "job_orphan_pod") {}

void JobOrphans::run(Now now) {
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) {
    std::make_shared<OrphanRelease>(shared_, queue_, *key)->advance(now);
  }
  queue_metrics_.show(queue_, now.mono);
}

OrphanRelease::OrphanRelease(Shared shared, client::WorkQueue& queue, client::ObjectKey pod)
    : StepRun(kOrphanSteps),
      shared_(shared),
      queue_(queue),
      key_(std::move(pod)),
      pod_(shared_.pods.cache().find(key_)) {}

Next OrphanRelease::run(Step step, Now now) {
  switch (step) {
    case Step::kJob:
      return read_job(now);
    case Step::kRelease:
      return release();
  }
  return Next::kEnd;
}

Next OrphanRelease::read_job(Now now) {
  if (!pod_ || !workloads::is_tracked(*pod_)) return end({}, now);
  const api::OwnerReference* owner = api::controller_of(pod_->metadata);
  if (!is_job_reference(owner)) return Next::kStep;
  shared_.client.get(job_path(pod_->metadata, owner->name), then(&OrphanRelease::on_job));
  return Next::kWait;
}

Next OrphanRelease::on_job(const Result<api::Json>& outcome, Now now) {
  const auto job = outcome ? api::decode<api::Job>(*outcome) : Result<api::Job>(outcome.error());
  if (!job && job.error().code != ErrorCode::kNotFound) return end(job.error(), now);
  const bool is_owner = job && job->metadata.uid == api::controller_of(pod_->metadata)->uid;
  const bool counts = is_owner && !workloads::is_finished(*job);
  if (counts || (job && workloads::is_managed_elsewhere(*job))) return end({}, now);
  return Next::kStep;
}

Next OrphanRelease::release() {
  shared_.client.patch(pods_path(pod_->metadata, pod_->metadata.name), client::PatchType::kStrategicMerge,
                       release_finalizer_patch(*pod_), then(&OrphanRelease::on_released));
  return Next::kWait;
}

Next OrphanRelease::on_released(const Result<api::Json>& outcome, Now now) {
  const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
  return end(outcome || gone ? Outcome() : Outcome(outcome.error()), now);
}

Next OrphanRelease::end(const Outcome& outcome, Now now) {
  queue_.done(key_);
  if (outcome || outcome.error().code == ErrorCode::kConflict) {
    queue_.forget(key_);
  } else {
    queue_.retry(key_, now.mono);
  }
  return Next::kEnd;
}

}  // namespace spillway::controllers
