#include "controllers/workloads/job.h"

#include "api/codec/codec.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/sync_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace spillway::controllers {

namespace {

constexpr Duration kPodLooksApart = seconds(1);
constexpr Duration kUnseenJobStatusMax = seconds(10);

Owner owner_of(const api::Job& job) {
  return {api::Job::kApiVersion, api::Job::kKind, job.metadata};
}

std::string job_path(const api::ObjectMeta& neighbour, std::string_view name, std::string_view subresource = {}) {
  return client::object_path(api::Job::kApiVersion, "jobs", neighbour.ns, name, subresource);
}

bool is_job_reference(const api::OwnerReference* owner) {
  return owner != nullptr && owner->kind == api::Job::kKind && owner->api_version.starts_with("batch/");
}

/// Every member of the status, null for absent ones, so that a patch removes them.
api::Json status_document(const api::JobStatus& status) {
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

std::optional<std::uint64_t> version_number(std::string_view version) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(version.data(), version.data() + version.size(), value);
  if (ec != std::errc{} || end != version.data() + version.size()) return std::nullopt;
  return value;
}

client::EventType event_type(std::string_view type) {
  return type == "Warning" ? client::EventType::kWarning : client::EventType::kNormal;
}

/// The copy that a claimed pod becomes.
PodPtr with_finalizer(const PodPtr& pod) {
  if (workloads::is_tracked(*pod)) return pod;
  auto copy = std::make_shared<api::Pod>(*pod);
  copy->metadata.finalizers.emplace_back(workloads::kJobTracking);
  return copy;
}

}  // namespace

/// The state of a sync under way. `open` calls of the present step have no answer.
struct JobController::Look {
  JobPtr job;
  std::string key;
  workloads::JobPlan plan;
  Instant begin{};
  std::string version;     // the Job's, as last written
  api::JobStatus written;  // the same
  std::size_t open = 0;
  std::optional<Error> failure;
  std::size_t asked = 0;  // pods of plan.created
  std::size_t batch = 1;
  std::int32_t missing = 0;  // pods of `asked` that could not be created
  void (JobController::*next)(const LookPtr&, Now) = nullptr;

  const std::string& uid() const { return job->metadata.uid; }
};

JobController::JobController(Shared shared, client::Informer<api::Job>& jobs, telemetry::Registry& metrics)
    : shared_(shared),
      jobs_(jobs),
      queue_({.retry_min = seconds(1), .retry_max = minutes(1)}),
      queue_metrics_(metrics, "job"),
      orphan_metrics_(metrics, "job_orphan_pod"),
      job_metrics_(metrics) {
  jobs_.cache().listen({[this](const auto& before, const auto& after, Now now) { on_job(before, after, now); }});
  shared_.pods.cache().listen({[this](const auto& before, const auto& after, Now now) { on_pod(before, after, now); }});
}

void JobController::start(Now now) {
  started_ = true;
  for (const auto& [key, job] : jobs_.cache().all()) enqueue(key, now);
  for (const auto& [key, pod] : shared_.pods.cache().all()) {
    if (workloads::is_tracked(*pod)) enqueue_orphan(pod, now);
  }
}

void JobController::on_job(const JobPtr& before, const JobPtr& after, Now now) {
  const bool gone = before && (!after || after->metadata.uid != before->metadata.uid);
  if (gone) {
    key_by_uid_.erase(before->metadata.uid);
    memory_.erase(before->metadata.uid);
    expectations_.forget(before->metadata.uid);
  }
  if (after) key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
  if (gone || (after && workloads::is_finished(*after))) {
    for (const PodPtr& pod : pods_.of((gone ? before : after)->metadata.uid)) enqueue_orphan(pod, now);
  }
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void JobController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  pods_.on_change(before, after);
  note_pod(before, after, now);
  if (!after) return;
  if (workloads::is_tracked(*after)) enqueue_orphan(after, now);
  if (api::controller_of(after->metadata) != nullptr) return;
  // A Job may want to adopt it.
  visit_namespace(jobs_.cache().all(), after->metadata.ns, [&](const std::string& key, const JobPtr& job) {
    if (job->selector.matches(after->metadata.labels)) enqueue(key, now);
  });
}

/// Requeues the Jobs that own the pod, or did before.
void JobController::note_pod(const PodPtr& before, const PodPtr& after, Now now) {
  const auto known = [this](const PodPtr& pod) -> std::optional<std::string> {
    const api::OwnerReference* owner = pod ? api::controller_of(pod->metadata) : nullptr;
    if (owner == nullptr || !key_by_uid_.contains(owner->uid)) return std::nullopt;
    return owner->uid;
  };
  const bool another = !before || !after || before->metadata.uid != after->metadata.uid;
  if (const auto uid = known(after)) {
    if (another) expectations_.of(*uid).appeared(after->metadata.uid);
    enqueue_paced(*uid, now);
  }
  if (const auto uid = known(before)) {
    if (another || after->metadata.deletion_timestamp) expectations_.of(*uid).left(before->metadata.uid);
    if (another || !workloads::is_tracked(*after)) memory_[*uid].released.erase(before->metadata.uid);
    enqueue_paced(*uid, now);
  }
}

void JobController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

/// Spaces out syncs that pods cause: a sync costs as much as the Job has pods, and many of them change at once.
void JobController::enqueue_paced(const std::string& uid, Now now) {
  if (!started_) return;
  queue_.add(key_by_uid_.at(uid), std::max(now.mono, memory_[uid].looks_paced_until));
}

void JobController::run(Now now) {
  if (!started_) return;
  SyncSlice slice;
  while (slice.has_room()) {
    const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono);
    if (!key) break;
    slice.add(pods_.count_orphans_in(namespace_of(*key)));
    look(*key, now);
  }
  while (const std::optional<std::string> key = orphan_metrics_.take(orphans_, now.mono)) free_orphan(*key, now);
  queue_metrics_.show(queue_, now.mono);
  orphan_metrics_.show(orphans_, now.mono);
  arm();
}

void JobController::arm() {
  std::optional<Instant> due = queue_.next_due();
  if (const auto other = orphans_.next_due(); other && (!due || *other < *due)) due = other;
  wake_up_.set(shared_.client, due);
}

void JobController::look(const std::string& key, Now now) {
  const JobPtr job = jobs_.cache().find(key);
  if (!job || workloads::is_finished(*job) || workloads::is_managed_elsewhere(*job)) {
    queue_.done(key);
    return queue_.forget(key);
  }
  const std::string& uid = job->metadata.uid;
  if (is_cache_behind(*job, now)) {
    queue_.done(key);
    return queue_.add(key, now.mono + kUnseenJobStatusMax);
  }
  Expectations& expected = expectations_.of(uid);
  const bool current = expected.fulfilled(now.mono);
  if (current) expected.reset();
  if (const auto due = expected.next_look(now.mono)) queue_.add(key, *due);
  Memory& memory = memory_[uid];
  workloads::JobView view{*job, claim(*job), memory.released, memory.backoff,
                          current ? workloads::JobCache::kCurrent : workloads::JobCache::kBehind};
  const auto begun = std::make_shared<Look>();
  begun->job = job;
  begun->key = key;
  begun->plan = workloads::plan_job(view, now.wall);
  begun->begin = now.mono;
  begun->version = job->metadata.resource_version;
  begun->written = job->status;
  leave(begun, now);
}

/// True if the cache does not show the last sync's write yet. It does so within moments, or the watch is broken.
bool JobController::is_cache_behind(const api::Job& job, Now now) {
  Memory& memory = memory_[job.metadata.uid];
  if (!memory.written_version) return false;
  const auto shown = version_number(job.metadata.resource_version);
  if (shown && *shown < *memory.written_version && now.mono < memory.looks_paced_until + kUnseenJobStatusMax)
    return true;
  memory.written_version.reset();
  return false;
}

/// The pods that belong to the Job; adopts and releases on the way.
std::vector<PodPtr> JobController::claim(const api::Job& job) {
  std::vector<PodPtr> claimed;
  const auto retry = [this, key = client::key_of(job.metadata)](const Result<api::Json>& outcome, Now then) {
    if (!outcome) queue_.retry(key, then.mono);
  };
  for (const PodPtr& pod : pods_.of(job.metadata.uid)) {
    if (job.selector.matches(pod->metadata.labels)) {
      claimed.push_back(pod);
    } else if (!pod->metadata.deletion_timestamp) {
      shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                           release_patch(job.metadata, pod->metadata), retry);
    }
  }
  if (job.metadata.deletion_timestamp) return claimed;
  for (const PodPtr& pod : pods_.orphans_in(job.metadata.ns)) {
    if (!is_active(*pod) || !job.selector.matches(pod->metadata.labels)) continue;
    api::Json patch = adoption_patch(owner_of(job), pod->metadata);
    patch["metadata"]["finalizers"] = api::Json::array({workloads::kJobTracking});
    shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge,
                         std::move(patch), retry);
    claimed.push_back(with_finalizer(pod));
  }
  return claimed;
}

void JobController::give_up(const LookPtr& look, const Error& error, Now now) {
  // Another client wrote first, or the object is deleted: the watch reports both. Not found is also the answer where
  // writes are off.
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    shared_.log.warning("job sync failed", {{"job", look->key}, {"error", error.text()}});
  }
  job_metrics_.count_look(*look->job, look->plan.action, JobMetrics::Result::kError, now.mono - look->begin);
  queue_.done(look->key);
  queue_.retry(look->key, now.mono);
}

/// One call of the step has ended; when all have, the next step begins.
void JobController::answered(const LookPtr& look, const Result<api::Json>& outcome, Now now) {
  if (!outcome && !look->failure) look->failure = outcome.error();
  if (--look->open > 0) return;
  if (look->failure) return give_up(look, *look->failure, now);
  (this->*look->next)(look, now);
}

void JobController::patch_finalizer(const PodPtr& pod, client::ApiClient::Done done) {
  const api::Json patch = api::Json::object(
      {{"metadata",
        api::Json::object({{"uid", pod->metadata.uid},
                           {"$deleteFromPrimitiveList/finalizers", api::Json::array({workloads::kJobTracking})}})}});
  shared_.client.patch(pods_path(pod->metadata, pod->metadata.name), client::PatchType::kStrategicMerge, patch,
                       [done = std::move(done)](const Result<api::Json>& outcome, Now now) {
                         const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
                         done(gone ? Result<api::Json>(api::Json()) : outcome, now);
                       });
}

void JobController::leave(const LookPtr& look, Now now) {
  look->open = look->plan.dropped.size() + look->plan.removed.size();
  look->next = &JobController::come;
  if (look->open == 0) return come(look, now);
  for (const PodPtr& pod : look->plan.dropped) drop(look, pod);
  for (const PodPtr& pod : look->plan.removed) remove(look, pod);
}

void JobController::drop(const LookPtr& look, const PodPtr& pod) {
  if (!workloads::is_tracked(*pod)) return remove(look, pod);
  patch_finalizer(pod, [this, look, pod](const Result<api::Json>& outcome, Now then) {
    if (!outcome) return answered(look, outcome, then);
    if (key_by_uid_.contains(look->uid())) memory_[look->uid()].released.insert(pod->metadata.uid);
    remove(look, pod);
  });
}

void JobController::remove(const LookPtr& look, const PodPtr& pod) {
  const std::string uid = look->uid();
  const auto look_again = [this, key = look->key](Now then) { enqueue(key, then); };
  if (key_by_uid_.contains(uid)) expectations_.of(uid).expect_deletion(pod->metadata.uid);
  shared_.client.remove(pods_path(pod->metadata, pod->metadata.name), delete_options(*pod),
                        [this, look, pod, uid, look_again](const Result<api::Json>& outcome, Now then) {
                          const api::ObjectReference about = client::reference_to(*look->job);
                          if (outcome) {
                            expectations_.deleted(uid, look_again, then);
                            shared_.events.record(about, client::EventType::kNormal, "SuccessfulDelete",
                                                  fmt::format("Deleted pod: {}", pod->metadata.name), then);
                            return answered(look, outcome, then);
                          }
                          expectations_.deletion_failed(uid, pod->metadata.uid, outcome.error(), shared_.client,
                                                        look_again, then);
                          if (outcome.error().code == ErrorCode::kNotFound) return answered(look, api::Json(), then);
                          shared_.events.record(about, client::EventType::kWarning, "FailedDelete",
                                                fmt::format("Error deleting: {}", outcome.error().message), then);
                          answered(look, outcome, then);
                        });
}

/// One pod first, then twice as many each time, so that a template that is refused is not tried 500 times.
void JobController::come(const LookPtr& look, Now now) {
  if (look->plan.created.empty() || !key_by_uid_.contains(look->uid())) return note(look, now);
  expectations_.of(look->uid()).expect_creations(look->plan.created.size());
  create_batch(look, now);
}

void JobController::create_batch(const LookPtr& look, Now) {
  look->open = std::min(look->batch, look->plan.created.size() - look->asked);
  const Owner owner = owner_of(*look->job);
  for (std::size_t left = look->open; left > 0; --left) {
    api::Json document = workloads::job_pod_document(*look->job, look->plan.created[look->asked++]);
    document["metadata"]["ownerReferences"] = api::Json::array({owner_reference(owner)});
    shared_.client.create(
        pods_path(look->job->metadata), std::move(document),
        [this, look](const Result<api::Json>& outcome, Now then) { on_created(look, outcome, then); });
  }
}

void JobController::on_created(const LookPtr& look, const Result<api::Json>& outcome, Now now) {
  const std::string uid = look->uid();
  const api::ObjectReference about = client::reference_to(*look->job);
  const auto look_again = [this, key = look->key](Now then) { enqueue(key, then); };
  if (outcome) {
    expectations_.created(uid, std::string(outcome->string_at({"metadata", "uid"})), look_again, now);
    shared_.events.record(about, client::EventType::kNormal, "SuccessfulCreate",
                          fmt::format("Created pod: {}", outcome->string_at({"metadata", "name"})), now);
  } else {
    ++look->missing;
    if (!look->failure) look->failure = outcome.error();
    expectations_.creation_failed(uid, outcome.error(), shared_.client, look_again, now);
    if (outcome.error().code != ErrorCode::kNotFound) {
      shared_.events.record(about, client::EventType::kWarning, "FailedCreate",
                            fmt::format("Error creating: {}", outcome.error().message), now);
    }
  }
  if (--look->open > 0) return;
  const std::size_t left = look->plan.created.size() - look->asked;
  if (!look->failure && left > 0) {
    look->batch *= 2;
    return create_batch(look, now);
  }
  if (left > 0) {
    look->missing += static_cast<std::int32_t>(left);
    expectations_.creations_dropped(uid, left, [](Now) {}, now);  // a failure is retried when this look ends
  }
  note(look, now);
}

void JobController::note(const LookPtr& look, Now now) {
  for (std::optional<api::JobStatus>* status : {&look->plan.counted, &look->plan.settled}) {
    if (*status) (*status)->active = std::max((*status)->active - look->missing, 0);
  }
  if (look->failure && look->failure->code == ErrorCode::kNotFound) return give_up(look, *look->failure, now);
  if (!look->plan.counted) return release(look, now);
  write_status(look, *look->plan.counted, look->plan.events, &JobController::release);
}

void JobController::write_status(const LookPtr& look, const api::JobStatus& status,
                                 const std::vector<workloads::JobEvent>& events,
                                 void (JobController::*next)(const LookPtr&, Now)) {
  const api::ObjectMeta& metadata = look->job->metadata;
  api::Json patch =
      api::Json::object({{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", look->version}})},
                         {"status", status_document(status)}});
  shared_.client.patch(job_path(metadata, metadata.name, "status"), client::PatchType::kMerge, std::move(patch),
                       [this, look, &status, &events, next](const Result<api::Json>& outcome, Now then) {
                         if (!outcome) return give_up(look, outcome.error(), then);
                         job_metrics_.count_written(*look->job, look->written, status);
                         look->written = status;
                         look->version = outcome->string_at({"metadata", "resourceVersion"});
                         if (key_by_uid_.contains(look->uid())) {
                           Memory& memory = memory_[look->uid()];
                           memory.written_version = version_number(look->version);
                           memory.backoff = look->plan.backoff;
                           memory.looks_paced_until = std::max(memory.looks_paced_until, then.mono);
                         }
                         for (const workloads::JobEvent& event : events) {
                           shared_.events.record(client::reference_to(*look->job), event_type(event.type), event.reason,
                                                 event.message, then);
                         }
                         (this->*next)(look, then);
                       });
}

void JobController::release(const LookPtr& look, Now now) {
  look->open = look->plan.released.size();
  look->next = &JobController::settle;
  if (look->open == 0) return settle(look, now);
  for (const PodPtr& pod : look->plan.released) {
    patch_finalizer(pod, [this, look, uid = pod->metadata.uid](const Result<api::Json>& outcome, Now then) {
      if (outcome && key_by_uid_.contains(look->uid())) memory_[look->uid()].released.insert(uid);
      answered(look, outcome, then);
    });
  }
}

void JobController::settle(const LookPtr& look, Now now) {
  if (!look->plan.settled) return end(look, now);
  write_status(look, *look->plan.settled, look->plan.final_events, &JobController::end);
}

void JobController::end(const LookPtr& look, Now now) {
  if (key_by_uid_.contains(look->uid())) memory_[look->uid()].looks_paced_until = now.mono + kPodLooksApart;
  if (look->failure) return give_up(look, *look->failure, now);
  job_metrics_.count_look(*look->job, look->plan.action, JobMetrics::Result::kSuccess, now.mono - look->begin);
  queue_.done(look->key);
  queue_.forget(look->key);
  for (const Duration each : look->plan.look_again) queue_.add(look->key, now.mono + each);
}

/// Queues a pod that may be an orphan; its own sync decides that.
void JobController::enqueue_orphan(const PodPtr& pod, Now now) {
  if (!workloads::is_tracked(*pod)) return;
  const api::OwnerReference* owner = api::controller_of(pod->metadata);
  const auto key = owner != nullptr ? key_by_uid_.find(owner->uid) : key_by_uid_.end();
  if (key != key_by_uid_.end()) {
    const JobPtr job = jobs_.cache().find(key->second);
    if (job && !workloads::is_finished(*job)) return;
  }
  if (started_) orphans_.add(client::key_of(pod->metadata), now.mono);
}

/// The cache of Jobs may be behind that of pods: the Job is read from the server before a pod is let go uncounted.
void JobController::free_orphan(const std::string& key, Now now) {
  const PodPtr pod = shared_.pods.cache().find(key);
  const auto done = [this, key](const Result<api::Json>& outcome, Now then) {
    orphans_.done(key);
    if (outcome || outcome.error().code == ErrorCode::kConflict) return orphans_.forget(key);
    orphans_.retry(key, then.mono);
  };
  if (!pod || !workloads::is_tracked(*pod)) return done(api::Json(), now);
  const api::OwnerReference* owner = api::controller_of(pod->metadata);
  if (!is_job_reference(owner)) return patch_finalizer(pod, done);
  shared_.client.get(job_path(pod->metadata, owner->name),
                     [this, pod, done, uid = owner->uid](const Result<api::Json>& outcome, Now then) {
                       const auto job = outcome ? api::decode<api::Job>(*outcome) : Result<api::Job>(outcome.error());
                       if (!job && job.error().code != ErrorCode::kNotFound) return done(job.error(), then);
                       const bool counts = job && job->metadata.uid == uid && !workloads::is_finished(*job);
                       if (counts || (job && workloads::is_managed_elsewhere(*job))) return done(api::Json(), then);
                       patch_finalizer(pod, done);
                     });
}

}  // namespace spillway::controllers
