#include "controllers/workloads/cron_job_sync.h"

#include "api/codec/codec.h"
#include "base/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace spillway::controllers {

namespace {

constexpr std::array kCronJobSteps = {
    CronJobStep::kActiveJobs, CronJobStep::kPlan,    CronJobStep::kReplacement, CronJobStep::kCreation,
    CronJobStep::kNamesake,   CronJobStep::kHistory, CronJobStep::kStatus,      CronJobStep::kEnd,
};

std::string jobs_path(const api::ObjectMeta& neighbour, std::string_view name = {}) {
  return client::object_path(api::Job::kApiVersion, "jobs", neighbour.ns, name);
}

api::ObjectReference active_reference(const api::Json& job) {
  return {.kind = std::string(api::Job::kKind),
          .api_version = std::string(api::Job::kApiVersion),
          .ns = std::string(job.string_at({"metadata", "namespace"})),
          .name = std::string(job.string_at({"metadata", "name"})),
          .uid = std::string(job.string_at({"metadata", "uid"})),
          .resource_version = std::string(job.string_at({"metadata", "resourceVersion"}))};
}

api::Json cron_status_document(const api::CronJobStatus& status) {
  api::CronJob bare;
  bare.status = status;
  const api::Json written = api::encode(bare);
  api::Json document = api::Json::object();
  for (const std::string_view field : {"active", "lastScheduleTime", "lastSuccessfulTime"}) {
    const api::Json* value = written.at({"status", field});
    document[field] = value != nullptr ? *value : api::Json();
  }
  return document;
}

}  // namespace

CronJobSync::CronJobSync(const CronJobTools& tools, CronJobPtr cron)
    : StepRun(kCronJobSteps), tools_(tools), cron_(std::move(cron)), key_(client::key_of(cron_->metadata)) {
  const auto known = tools_.jobs.of(cron_->metadata.uid);
  for (const api::ObjectReference& each : cron_->status.active) {
    const bool shown = std::ranges::any_of(known, [&each](const auto& job) { return job->metadata.uid == each.uid; });
    if (!shown) unknown_.push_back(each);
  }
}

Next CronJobSync::run(Step step, Now now) {
  switch (step) {
    case Step::kActiveJobs:
      return read_active_job();
    case Step::kPlan:
      return plan(now);
    case Step::kReplacement:
      return replace_job();
    case Step::kCreation:
      return create_job();
    case Step::kNamesake:
      return read_namesake();
    case Step::kHistory:
      return cut_history();
    case Step::kStatus:
      return write_status();
    case Step::kEnd:
      return end(now);
  }
  return Next::kEnd;
}

Next CronJobSync::read_active_job() {
  if (unknown_.empty()) return Next::kStep;
  tools_.shared.client.get(jobs_path(cron_->metadata, unknown_.back().name), then(&CronJobSync::on_active_job));
  return Next::kWait;
}

Next CronJobSync::on_active_job(const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code != ErrorCode::kNotFound) return give_up(outcome.error(), now);
  const std::string uid = std::move(unknown_.back().uid);
  unknown_.pop_back();
  if (outcome && outcome->string_at({"metadata", "uid"}) == uid) unseen_.insert(uid);
  steps_.go_to(Step::kActiveJobs);
  return Next::kStep;
}

Next CronJobSync::plan(Now now) {
  plan_ = workloads::plan_cron({*cron_, tools_.jobs.of(cron_->metadata.uid), unseen_}, now.wall);
  for (const workloads::JobEvent& event : plan_.events) {
    record(event.type == "Warning" ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
           event.message, now);
  }
  return Next::kStep;
}

Next CronJobSync::replace_job() {
  if (replaced_ == plan_.replaced.size()) return Next::kStep;
  return remove(plan_.replaced[replaced_++], Step::kReplacement);
}

Next CronJobSync::remove(api::ObjectReference job, Step present) {
  steps_.go_to(present);
  removing_ = std::move(job);
  api::ObjectMeta metadata;
  metadata.uid = removing_.uid;
  api::Json options = delete_options(metadata);
  options["propagationPolicy"] = "Background";
  tools_.shared.client.remove(jobs_path(cron_->metadata, removing_.name), std::move(options),
                              then(&CronJobSync::on_removed));
  return Next::kWait;
}

Next CronJobSync::on_removed(const Result<api::Json>& outcome, Now now) {
  const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
  if (!outcome && !gone) {
    record(client::EventType::kWarning, "FailedDelete", fmt::format("Deleted job: {}", outcome.error().message), now);
    return give_up(outcome.error(), now);
  }
  workloads::record_gone(plan_.status, removing_.uid);
  plan_.status_changed = true;
  if (outcome) {
    record(client::EventType::kNormal, "SuccessfulDelete", fmt::format("Deleted job {}", removing_.name), now);
  }
  return Next::kStep;
}

Next CronJobSync::create_job() {
  if (!plan_.due) return Next::kStep;
  api::Json document = workloads::cron_job_document(*cron_, *plan_.due);
  const Owner owner{api::CronJob::kApiVersion, api::CronJob::kKind, cron_->metadata};
  document["metadata"]["ownerReferences"] = api::Json::array({owner_reference(owner)});
  tools_.shared.client.create(jobs_path(cron_->metadata), std::move(document), then(&CronJobSync::on_created));
  return Next::kWait;
}

Next CronJobSync::on_created(const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) {
    name_is_taken_ = true;
    return Next::kStep;
  }
  if (!outcome) {
    // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
    if (outcome.error().code != ErrorCode::kNotFound) {
      record(client::EventType::kWarning, "FailedCreate",
             fmt::format("Error creating job: {}", outcome.error().message), now);
    }
    return give_up(outcome.error(), now);
  }
  record(client::EventType::kNormal, "SuccessfulCreate",
         fmt::format("Created job {}", outcome->string_at({"metadata", "name"})), now);
  tools_.skew.observe(std::chrono::duration<double>(now.wall - *plan_.due).count());
  workloads::record_started(plan_.status, active_reference(*outcome), *plan_.due);
  plan_.status_changed = true;
  return Next::kStep;
}

/// The name of the new Job may be taken by an earlier sync of ours whose status was not written, or by a Job of another
/// owner.
Next CronJobSync::read_namesake() {
  if (!name_is_taken_) return Next::kStep;
  const std::string name = workloads::cron_job_name(*cron_, *plan_.due);
  tools_.shared.client.get(jobs_path(cron_->metadata, name), then(&CronJobSync::on_namesake));
  return Next::kWait;
}

Next CronJobSync::on_namesake(const Result<api::Json>& outcome, Now now) {
  const auto job = outcome ? api::decode<api::Job>(*outcome) : Result<api::Job>(outcome.error());
  if (!job) return give_up(job.error(), now);
  const api::OwnerReference* owner = api::controller_of(job->metadata);
  if (owner != nullptr && owner->uid == cron_->metadata.uid) {
    workloads::record_started(plan_.status, active_reference(*outcome), *plan_.due);
    plan_.status_changed = true;
  }
  return Next::kStep;
}

Next CronJobSync::cut_history() {
  if (outlived_ == plan_.outlived.size()) return Next::kStep;
  const api::ObjectMeta& job = plan_.outlived[outlived_++]->metadata;
  return remove({.name = job.name, .uid = job.uid}, Step::kHistory);
}

Next CronJobSync::write_status() {
  if (!plan_.status_changed) return Next::kStep;
  const api::ObjectMeta& metadata = cron_->metadata;
  api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}})},
       {"status", cron_status_document(plan_.status)}});
  tools_.shared.client.patch(
      client::object_path(api::CronJob::kApiVersion, "cronjobs", metadata.ns, metadata.name, "status"),
      client::PatchType::kMerge, std::move(patch), then(&CronJobSync::on_status_written));
  return Next::kWait;
}

Next CronJobSync::on_status_written(const Result<api::Json>& outcome, Now now) {
  if (!outcome) return give_up(outcome.error(), now);
  const auto version = parse_whole<std::uint64_t>(outcome->string_at({"metadata", "resourceVersion"}));
  const std::string& uid = cron_->metadata.uid;
  if (version && tools_.key_by_uid.contains(uid)) tools_.written_by_uid[uid] = {*version, now.mono};
  return Next::kStep;
}

Next CronJobSync::end(Now now) {
  tools_.queue.done(key_);
  tools_.queue.forget(key_);
  if (plan_.requeue_after) tools_.queue.add(key_, now.mono + *plan_.requeue_after);
  return Next::kEnd;
}

Next CronJobSync::give_up(const Error& error, Now now) {
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    tools_.shared.log.warning("cron job sync failed", {{"cron_job", key_}, {"error", error.text()}});
  }
  tools_.queue.done(key_);
  tools_.queue.retry(key_, now.mono);
  return Next::kEnd;
}

void CronJobSync::record(client::EventType type, std::string_view reason, const std::string& message, Now now) {
  tools_.shared.events.record(client::reference_to(*cron_), type, reason, message, now);
}

}  // namespace spillway::controllers
