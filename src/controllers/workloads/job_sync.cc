#include "controllers/workloads/job_sync.h"

#include "api/codec/codec.h"
#include "base/number.h"
#include "controllers/shared/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::array kJobSteps = {
    JobStep::kDeletion, JobStep::kCreation, JobStep::kCounting, JobStep::kRelease, JobStep::kFinalStatus, JobStep::kEnd,
};

/// Syncs of one Job that pods cause are that far apart: a sync costs as much as the Job has pods, and a thousand pods
/// that end within a second would make a thousand of them. Upstream batches by one second as well.
constexpr Duration kPodSyncsApart = seconds(1);

/// Every member of the status, null for absent ones, so that a patch removes them.
api::Json job_status_document(const api::JobStatus& status) {
  api::Job bare;
  bare.status = status;
  const api::Json written = api::encode(bare);
  api::Json document = api::Json::object();
  for (const std::string_view field : {"conditions", "startTime", "completionTime", "active", "succeeded", "failed",
                                       "completedIndexes", "failedIndexes", "ready", "terminating"}) {
    const api::Json* value = written.at({"status", field});
    document[field] = value != nullptr ? *value : api::Json();
  }
  api::Json uncounted = api::Json::object({{"succeeded", nullptr}, {"failed", nullptr}});
  for (const std::string_view list : {"succeeded", "failed"}) {
    const api::Json* uids = written.at({"status", "uncountedTerminatedPods", list});
    if (uids != nullptr) uncounted[list] = *uids;
  }
  document["uncountedTerminatedPods"] = std::move(uncounted);
  return document;
}

client::EventType event_type(std::string_view type) {
  return type == "Warning" ? client::EventType::kWarning : client::EventType::kNormal;
}

/// The result of removing a finalizer: success also if the pod is gone.
Outcome outcome_of_release(const Result<api::Json>& outcome) {
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return {};
  return outcome.error();
}

}  // namespace

std::string job_path(const api::ObjectMeta& neighbour, std::string_view name, std::string_view subresource) {
  return client::object_path(api::Job::kApiVersion, "jobs", neighbour.ns, name, subresource);
}

api::Json release_finalizer_patch(const api::Pod& pod) {
  return api::Json::object({{"metadata", api::Json::object({{"uid", pod.metadata.uid},
                                                            {"$deleteFromPrimitiveList/finalizers",
                                                             api::Json::array({workloads::kJobTracking})}})}});
}

JobSync::JobSync(const JobTools& tools, JobPtr job, workloads::JobPlan plan, Now now)
    : StepRun(kJobSteps),
      tools_(tools),
      job_(std::move(job)),
      key_(client::key_of(job_->metadata)),
      plan_(std::move(plan)),
      begin_(now.mono),
      version_(job_->metadata.resource_version),
      written_(job_->status) {}

Next JobSync::run(Step step, Now now) {
  switch (step) {
    case Step::kDeletion:
      return delete_pods();
    case Step::kCreation:
      return create_batch();
    case Step::kCounting:
      return count_ended(now);
    case Step::kRelease:
      return release_pods();
    case Step::kFinalStatus:
      return write_final_status();
    case Step::kEnd:
      return end(now);
  }
  return Next::kEnd;
}

Next JobSync::delete_pods() {
  open_ = plan_.dropped.size() + plan_.removed.size();
  if (open_ == 0) return Next::kStep;
  for (const PodPtr& pod : plan_.dropped) drop(pod);
  for (const PodPtr& pod : plan_.removed) remove(pod);
  return Next::kWait;
}

/// Deletes a pod that is not counted: its finalizer is taken first.
void JobSync::drop(const PodPtr& pod) {
  if (!workloads::is_tracked(*pod)) return remove(pod);
  tools_.shared.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                             release_finalizer_patch(*pod), then(&JobSync::on_dropped, pod));
}

Next JobSync::on_dropped(const PodPtr& pod, const Result<api::Json>& outcome, Now now) {
  const Outcome released = outcome_of_release(outcome);
  if (!released) return on_answered(released, now);
  if (JobMemory* memory = tools_.memories.find(uid())) memory->released.insert(pod->metadata.uid);
  remove(pod);
  return Next::kWait;
}

void JobSync::remove(const PodPtr& pod) {
  if (tools_.memories.find(uid()) != nullptr) tools_.expectations.of(uid()).expect_deletion(pod->metadata.uid);
  tools_.shared.client.remove(pods_path(pod->metadata, pod->metadata.name), delete_options(*pod),
                              then(&JobSync::on_deleted, pod));
}

Next JobSync::on_deleted(const PodPtr& pod, const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    tools_.expectations.deleted(uid(), requeue(), now);
    record(client::EventType::kNormal, "SuccessfulDelete", fmt::format("Deleted pod: {}", pod->metadata.name), now);
    return on_answered({}, now);
  }
  const Error& error = outcome.error();
  tools_.expectations.deletion_failed(uid(), pod->metadata.uid, error, tools_.shared.client, requeue(), now);
  if (error.code == ErrorCode::kNotFound) return on_answered({}, now);
  record(client::EventType::kWarning, "FailedDelete", fmt::format("Error deleting: {}", error.message), now);
  return on_answered(error, now);
}

Next JobSync::on_answered(const Outcome& outcome, Now now) {
  if (!outcome && !failure_) failure_ = outcome.error();
  if (--open_ > 0) return Next::kWait;
  return failure_ ? give_up(*failure_, now) : Next::kStep;
}

/// One pod first, then twice as many each time, so that a template that is refused is not tried 500 times.
Next JobSync::create_batch() {
  if (requested_ == 0) {
    if (plan_.created.empty() || tools_.memories.find(uid()) == nullptr) return Next::kStep;
    tools_.expectations.of(uid()).expect_creations(plan_.created.size());
  }
  open_ = std::min(batch_, plan_.created.size() - requested_);
  const Owner owner{api::Job::kApiVersion, api::Job::kKind, job_->metadata};
  for (std::size_t left = open_; left > 0; --left) {
    api::Json document = workloads::job_pod_document(*job_, plan_.created[requested_++]);
    document["metadata"]["ownerReferences"] = api::Json::array({owner_reference(owner)});
    tools_.shared.client.create(pods_path(job_->metadata), std::move(document), then(&JobSync::on_created));
  }
  return Next::kWait;
}

Next JobSync::on_created(const Result<api::Json>& outcome, Now now) {
  if (outcome) {
    tools_.expectations.created(uid(), std::string(outcome->string_at({"metadata", "uid"})), requeue(), now);
    record(client::EventType::kNormal, "SuccessfulCreate",
           fmt::format("Created pod: {}", outcome->string_at({"metadata", "name"})), now);
  } else {
    ++missing_;
    if (!failure_) failure_ = outcome.error();
    tools_.expectations.creation_failed(uid(), outcome.error(), tools_.shared.client, requeue(), now);
    // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
    if (outcome.error().code != ErrorCode::kNotFound) {
      record(client::EventType::kWarning, "FailedCreate", fmt::format("Error creating: {}", outcome.error().message),
             now);
    }
  }
  if (--open_ > 0) return Next::kWait;
  const std::size_t left = plan_.created.size() - requested_;
  if (!failure_ && left > 0) {
    batch_ *= 2;
    steps_.go_to(Step::kCreation);
  } else if (left > 0) {
    missing_ += static_cast<std::int32_t>(left);
    tools_.expectations.creations_dropped(uid(), left, [](Now) {}, now);  // a failure is retried when this sync ends
  }
  return Next::kStep;
}

Next JobSync::count_ended(Now now) {
  for (std::optional<api::JobStatus>* status : {&plan_.counted, &plan_.final_status}) {
    if (*status) (*status)->active = std::max((*status)->active - missing_, 0);
  }
  if (failure_ && failure_->code == ErrorCode::kNotFound) return give_up(*failure_, now);
  if (!plan_.counted) return Next::kStep;
  write_status(*plan_.counted, then(&JobSync::on_counted));
  return Next::kWait;
}

Next JobSync::on_counted(const Result<api::Json>& outcome, Now now) {
  return on_status_written(*plan_.counted, plan_.events, outcome, now);
}

Next JobSync::release_pods() {
  open_ = plan_.released.size();
  if (open_ == 0) return Next::kStep;
  for (const PodPtr& pod : plan_.released) {
    tools_.shared.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                               release_finalizer_patch(*pod), then(&JobSync::on_released, pod));
  }
  return Next::kWait;
}

Next JobSync::on_released(const PodPtr& pod, const Result<api::Json>& outcome, Now now) {
  const Outcome released = outcome_of_release(outcome);
  JobMemory* memory = tools_.memories.find(uid());
  if (released && memory != nullptr) memory->released.insert(pod->metadata.uid);
  return on_answered(released, now);
}

Next JobSync::write_final_status() {
  if (!plan_.final_status) return Next::kStep;
  write_status(*plan_.final_status, then(&JobSync::on_final_status));
  return Next::kWait;
}

Next JobSync::on_final_status(const Result<api::Json>& outcome, Now now) {
  return on_status_written(*plan_.final_status, plan_.final_events, outcome, now);
}

void JobSync::write_status(const api::JobStatus& status, client::ApiClient::Done done) {
  const api::ObjectMeta& metadata = job_->metadata;
  api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", version_}})},
                         {"status", job_status_document(status)}});
  tools_.shared.client.patch(job_path(metadata, metadata.name, "status"), client::PatchType::kMerge, std::move(patch),
                             std::move(done));
}

Next JobSync::on_status_written(const api::JobStatus& status, const std::vector<workloads::JobEvent>& events,
                                const Result<api::Json>& outcome, Now now) {
  if (!outcome) return give_up(outcome.error(), now);
  tools_.metrics.count_written(*job_, written_, status);
  written_ = status;
  version_ = outcome->string_at({"metadata", "resourceVersion"});
  if (JobMemory* memory = tools_.memories.find(uid())) {
    memory->written_version = parse_whole<std::uint64_t>(version_);
    memory->backoff = plan_.backoff;
    memory->syncs_paced_until = std::max(memory->syncs_paced_until, now.mono);
  }
  for (const workloads::JobEvent& event : events) record(event_type(event.type), event.reason, event.message, now);
  return Next::kStep;
}

Next JobSync::end(Now now) {
  if (JobMemory* memory = tools_.memories.find(uid())) memory->syncs_paced_until = now.mono + kPodSyncsApart;
  if (failure_) return give_up(*failure_, now);
  tools_.metrics.count_sync(*job_, plan_.action, JobMetrics::Result::kSuccess, now.mono - begin_);
  tools_.queue.done(key_);
  tools_.queue.forget(key_);
  for (const Duration each : plan_.requeue_after) tools_.queue.add(key_, now.mono + each);
  return Next::kEnd;
}

Next JobSync::give_up(const Error& error, Now now) {
  // Another client wrote first, or the object is gone: the watch reports both. Not found is also the answer where
  // writes are off.
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    tools_.shared.log.warning("job sync failed", {{"job", key_}, {"error", error.text()}});
  }
  tools_.metrics.count_sync(*job_, plan_.action, JobMetrics::Result::kError, now.mono - begin_);
  tools_.queue.done(key_);
  tools_.queue.retry(key_, now.mono);
  return Next::kEnd;
}

ExpectationTable::Requeue JobSync::requeue() const {
  return [&queue = tools_.queue, key = key_](Now now) { queue.add(key, now.mono); };
}

void JobSync::record(client::EventType type, std::string_view reason, const std::string& message, Now now) {
  tools_.shared.events.record(client::reference_to(*job_), type, reason, message, now);
}

}  // namespace spillway::controllers
