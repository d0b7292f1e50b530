#include "controllers/workloads/finished_jobs.h"

#include "api/codec/codec.h"
#include "controllers/shared/owned_pods.h"
#include "policy/workloads/job_pods.h"

#include <algorithm>

namespace spillway::controllers {

namespace {

std::string finished_path(const api::Job& job) {
  return client::object_path(api::Job::kApiVersion, "jobs", job.metadata.ns, job.metadata.name);
}

}  // namespace

FinishedJobs::FinishedJobs(client::ApiClient& client, const telemetry::Log& log, client::Informer<api::Job>& jobs,
                           telemetry::Registry& metrics)
    : client_(client), log_(log), jobs_(jobs), queue_metrics_(metrics, "ttl_jobs_to_delete") {
  jobs_.cache().listen({[this](const auto&, const auto& after, Now now) {
    if (after) enqueue(*after, now);
  }});
}

void FinishedJobs::start(Now now) {
  started_ = true;
  for (const auto& [key, job] : jobs_.cache().all()) enqueue(*job, now);
}

void FinishedJobs::enqueue(const api::Job& job, Now now) {
  const auto left = workloads::time_to_live(job, now.wall);
  if (started_ && left) queue_.add(client::key_of(job.metadata), now.mono + *left);
}

void FinishedJobs::run(Now now) {
  if (!started_) return;
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) sync(*key, now);
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void FinishedJobs::arm() {
  const std::optional<Instant> due = queue_.next_due();
  wake_up_.set(client_, due);
}

void FinishedJobs::sync(const std::string& key, Now now) {
  const auto cached = jobs_.cache().find(key);
  const auto left = cached ? workloads::time_to_live(*cached, now.wall) : std::nullopt;
  if (!left || *left > Duration::zero()) {
    queue_.done(key);
    queue_.forget(key);
    if (left) queue_.add(key, now.mono + *left);
    return;
  }
  client_.get(finished_path(*cached), [this, key, uid = cached->metadata.uid](const auto& outcome, Now then) {
    on_job(key, uid, outcome, then);
  });
}

void FinishedJobs::on_job(const std::string& key, const std::string& uid, const Result<api::Json>& outcome, Now now) {
  const auto job = outcome ? api::decode<api::Job>(*outcome) : Result<api::Job>(outcome.error());
  if (!job) return end(key, job.error(), now);
  const auto left = workloads::time_to_live(*job, now.wall);
  if (job->metadata.uid != uid || !left) return end(key, api::Json(), now);
  if (*left == Duration::zero()) return remove(key, *job);
  end(key, api::Json(), now);
  queue_.add(key, now.mono + *left);
}

void FinishedJobs::remove(const std::string& key, const api::Job& job) {
  api::Json options = delete_options(job.metadata);
  options["propagationPolicy"] = "Foreground";
  options["preconditions"]["resourceVersion"] = job.metadata.resource_version;
  client_.remove(finished_path(job), std::move(options),
                 [this, key](const Result<api::Json>& outcome, Now then) { end(key, outcome, then); });
}

void FinishedJobs::end(const std::string& key, const Result<api::Json>& outcome, Now now) {
  queue_.done(key);
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return queue_.forget(key);
  log_.warning("a finished job was not deleted", {{"job", key}, {"error", outcome.error().text()}});
  queue_.retry(key, now.mono);
}

}  // namespace spillway::controllers
