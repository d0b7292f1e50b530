#include "controllers/workloads/job.h"

#include "base/number.h"
#include "controllers/shared/paths.h"
#include "controllers/shared/sync_slice.h"
#include "controllers/workloads/job_sync.h"

#include <algorithm>
#include <utility>

namespace spillway::controllers {

namespace {

/// A sync waits that long for the cache to show the status of the last one. A cache shows it within moments; ten
/// seconds later its watch is broken, and a sync that meets an old version ends with a conflict.
constexpr Duration kUnseenJobStatusMax = seconds(10);

Owner owner_of(const api::Job& job) {
  return {api::Job::kApiVersion, api::Job::kKind, job.metadata};
}

/// The copy that a claimed pod becomes.
PodPtr with_finalizer(const PodPtr& pod) {
  if (workloads::is_tracked(*pod)) return pod;
  auto copy = std::make_shared<api::Pod>(*pod);
  copy->metadata.finalizers.emplace_back(workloads::kJobTracking);
  return copy;
}

}  // namespace

JobController::JobController(Shared shared, client::Informer<api::Job>& jobs, telemetry::Registry& metrics)
    : shared_(shared),
      jobs_(jobs),
      queue_({.retry_min = seconds(1), .retry_max = minutes(1)}),
      queue_metrics_(metrics, "job"),
      orphans_(shared_, metrics),
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
    memories_.erase(before->metadata.uid);
    expectations_.forget(before->metadata.uid);
  }
  if (after) {
    key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
    memories_.add(after->metadata.uid);
  }
  if (gone || (after && workloads::is_finished(*after))) {
    for (const PodPtr& pod : pods_.of((gone ? before : after)->metadata.uid)) enqueue_orphan(pod, now);
  }
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void JobController::on_pod(const PodPtr& before, const PodPtr& after, Now now) {
  pods_.on_change(before, after);
  notify_owners(before, after, now);
  if (!after) return;
  if (workloads::is_tracked(*after)) enqueue_orphan(after, now);
  if (api::controller_of(after->metadata) != nullptr) return;
  // A Job whose selector matches the pod may adopt it.
  visit_namespace(jobs_.cache().all(), after->metadata.ns, [&](const std::string& key, const JobPtr& job) {
    if (job->selector.matches(after->metadata.labels)) enqueue(key, now);
  });
}

/// Notes the change for the Jobs that own the pod, or did, and requeues them.
void JobController::notify_owners(const PodPtr& before, const PodPtr& after, Now now) {
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
    if (another || !workloads::is_tracked(*after)) memories_.find(*uid)->released.erase(before->metadata.uid);
    enqueue_paced(*uid, now);
  }
}

void JobController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

/// Spaces out syncs that pods cause: a sync costs as much as the Job has pods, and many of them change at once.
void JobController::enqueue_paced(const std::string& uid, Now now) {
  if (!started_) return;
  queue_.add(key_by_uid_.at(uid), std::max(now.mono, memories_.find(uid)->syncs_paced_until));
}

void JobController::run(Now now) {
  if (!started_) return;
  SyncSlice slice;
  while (slice.has_room()) {
    const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono);
    if (!key) break;
    slice.add(pods_.count_orphans_in(namespace_of(*key)));
    sync(*key, now);
  }
  orphans_.run(now);
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void JobController::arm() {
  std::optional<Instant> due = queue_.next_due();
  if (const auto other = orphans_.next_due(); other && (!due || *other < *due)) due = other;
  wake_up_.set(shared_.client, due);
}

void JobController::sync(const std::string& key, Now now) {
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
  if (const auto due = expected.next_sync(now.mono)) queue_.add(key, *due);
  const JobMemory& memory = *memories_.find(uid);
  workloads::JobView view{*job, claim(*job), memory.released, memory.backoff,
                          current ? workloads::JobCache::kCurrent : workloads::JobCache::kBehind};
  const JobTools tools{shared_, expectations_, memories_, job_metrics_, queue_};
  std::make_shared<JobSync>(tools, job, workloads::plan_job(view, now.wall), now)->advance(now);
}

/// True if the cache does not show the last sync's write yet. It does so within moments, or the watch is broken.
bool JobController::is_cache_behind(const api::Job& job, Now now) {
  JobMemory& memory = *memories_.find(job.metadata.uid);
  if (!memory.written_version) return false;
  const auto shown = parse_whole<std::uint64_t>(job.metadata.resource_version);
  if (shown && *shown < *memory.written_version && now.mono < memory.syncs_paced_until + kUnseenJobStatusMax)
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

/// Queues the release of a pod, unless a Job of the cache counts it.
void JobController::enqueue_orphan(const PodPtr& pod, Now now) {
  if (!workloads::is_tracked(*pod)) return;
  const api::OwnerReference* owner = api::controller_of(pod->metadata);
  const auto key = owner != nullptr ? key_by_uid_.find(owner->uid) : key_by_uid_.end();
  if (key != key_by_uid_.end()) {
    const JobPtr job = jobs_.cache().find(key->second);
    if (job && !workloads::is_finished(*job)) return;
  }
  if (started_) orphans_.add(client::key_of(pod->metadata), now);
}

}  // namespace spillway::controllers
