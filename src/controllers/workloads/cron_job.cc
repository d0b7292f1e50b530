#include "controllers/workloads/cron_job.h"

#include "api/codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace spillway::controllers {

namespace {

constexpr Duration kUnseenCronStatusMax = seconds(10);

Owner owner_of(const api::CronJob& cron) {
  return {api::CronJob::kApiVersion, api::CronJob::kKind, cron.metadata};
}

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

std::optional<std::uint64_t> cron_version(std::string_view version) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(version.data(), version.data() + version.size(), value);
  if (ec != std::errc{} || end != version.data() + version.size()) return std::nullopt;
  return value;
}

}  // namespace

/// The state of a sync under way.
struct CronJobController::Look {
  CronJobPtr cron;
  std::string key;
  std::vector<api::ObjectReference> unknown;  // active, not in the cache, not asked about
  std::set<std::string> unseen;               // the UIDs in `unknown` that exist
  workloads::CronPlan plan;
  std::size_t next = 0;  // index into the Jobs that this step deletes
};

CronJobController::CronJobController(Shared shared, client::Informer<api::CronJob>& cron_jobs,
                                     client::Informer<api::Job>& jobs, telemetry::Registry& metrics)
    : shared_(shared),
      cron_jobs_(cron_jobs),
      queue_metrics_(metrics, "cronjob"),
      skew_(metrics.histogram(
          "cronjob_controller_job_creation_skew_duration_seconds",
          "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
          {1, 2, 4, 8, 16, 32, 64, 128, 256, 512})) {
  cron_jobs_.cache().listen(
      {[this](const auto& before, const auto& after, Now now) { on_cron_job(before, after, now); }});
  jobs.cache().listen({[this](const auto& before, const auto& after, Now now) { on_job(before, after, now); }});
}

void CronJobController::start(Now now) {
  started_ = true;
  for (const auto& [key, cron] : cron_jobs_.cache().all()) enqueue(key, now);
}

void CronJobController::on_cron_job(const CronJobPtr& before, const CronJobPtr& after, Now now) {
  if (before && (!after || after->metadata.uid != before->metadata.uid)) {
    key_by_uid_.erase(before->metadata.uid);
    written_.erase(before->metadata.uid);
  }
  if (after) key_by_uid_[after->metadata.uid] = client::key_of(after->metadata);
  enqueue(client::key_of((after ? after : before)->metadata), now);
}

void CronJobController::on_job(const workloads::JobPtr& before, const workloads::JobPtr& after, Now now) {
  jobs_.on_change(before, after);
  for (const workloads::JobPtr& job : {before, after}) {
    const api::OwnerReference* owner = job ? api::controller_of(job->metadata) : nullptr;
    const auto key = owner != nullptr ? key_by_uid_.find(owner->uid) : key_by_uid_.end();
    if (key != key_by_uid_.end()) enqueue(key->second, now);
  }
}

void CronJobController::enqueue(const std::string& key, Now now) {
  if (started_) queue_.add(key, now.mono);
}

void CronJobController::run(Now now) {
  if (!started_) return;
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) look(*key, now);
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void CronJobController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void CronJobController::look(const std::string& key, Now now) {
  const CronJobPtr cron = cron_jobs_.cache().find(key);
  if (!cron) {
    queue_.done(key);
    return queue_.forget(key);
  }
  if (const auto written = written_.find(cron->metadata.uid); written != written_.end()) {
    const auto shown = cron_version(cron->metadata.resource_version);
    const Instant waits_until = written->second.at + kUnseenCronStatusMax;  // bounds the wait if the watch is broken
    if (shown && *shown < written->second.version && now.mono < waits_until) {
      queue_.done(key);
      return queue_.add(key, waits_until);
    }
    written_.erase(written);
  }
  const auto begun = std::make_shared<Look>();
  begun->cron = cron;
  begun->key = key;
  const auto known = jobs_.of(cron->metadata.uid);
  for (const api::ObjectReference& each : cron->status.active) {
    const bool shown = std::ranges::any_of(known, [&each](const auto& job) { return job->metadata.uid == each.uid; });
    if (!shown) begun->unknown.push_back(each);
  }
  ask(begun, now);
}

void CronJobController::ask(const LookPtr& look, Now now) {
  if (look->unknown.empty()) return decide(look, now);
  const api::ObjectReference each = look->unknown.back();
  look->unknown.pop_back();
  shared_.client.get(jobs_path(look->cron->metadata, each.name),
                     [this, look, uid = each.uid](const Result<api::Json>& outcome, Now then) {
                       if (!outcome && outcome.error().code != ErrorCode::kNotFound) {
                         return give_up(look, outcome.error(), then);
                       }
                       if (outcome && outcome->string_at({"metadata", "uid"}) == uid) look->unseen.insert(uid);
                       ask(look, then);
                     });
}

void CronJobController::decide(const LookPtr& look, Now now) {
  look->plan = workloads::plan_cron({*look->cron, jobs_.of(look->cron->metadata.uid), look->unseen}, now.wall);
  for (const workloads::JobEvent& event : look->plan.events) {
    tell(*look, event.type == "Warning" ? client::EventType::kWarning : client::EventType::kNormal, event.reason,
         event.message, now);
  }
  replace(look, now);
}

void CronJobController::tell(const Look& look, client::EventType type, std::string_view reason,
                             std::string_view message, Now now) {
  shared_.events.record(client::reference_to(*look.cron), type, reason, message, now);
}

void CronJobController::remove_job(const LookPtr& look, const api::ObjectReference& job,
                                   void (CronJobController::*next)(const LookPtr&, Now)) {
  api::ObjectMeta metadata;
  metadata.uid = job.uid;
  api::Json options = delete_options(metadata);
  options["propagationPolicy"] = "Background";
  shared_.client.remove(jobs_path(look->cron->metadata, job.name), std::move(options),
                        [this, look, job, next](const Result<api::Json>& outcome, Now then) {
                          const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
                          if (!outcome && !gone) {
                            tell(*look, client::EventType::kWarning, "FailedDelete",
                                 fmt::format("Deleted job: {}", outcome.error().message), then);
                            return give_up(look, outcome.error(), then);
                          }
                          workloads::note_gone(look->plan.status, job.uid);
                          look->plan.status_changed = true;
                          if (outcome) {
                            tell(*look, client::EventType::kNormal, "SuccessfulDelete",
                                 fmt::format("Deleted job {}", job.name), then);
                          }
                          (this->*next)(look, then);
                        });
}

void CronJobController::replace(const LookPtr& look, Now now) {
  if (look->next < look->plan.replaced.size()) {
    return remove_job(look, look->plan.replaced[look->next++], &CronJobController::replace);
  }
  look->next = 0;
  create(look, now);
}

void CronJobController::create(const LookPtr& look, Now now) {
  if (!look->plan.due) return cut_history(look, now);
  api::Json document = workloads::cron_job_document(*look->cron, *look->plan.due);
  document["metadata"]["ownerReferences"] = api::Json::array({owner_reference(owner_of(*look->cron))});
  shared_.client.create(jobs_path(look->cron->metadata), std::move(document),
                        [this, look](const Result<api::Json>& outcome, Now then) { on_created(look, outcome, then); });
}

void CronJobController::on_created(const LookPtr& look, const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) return on_name_taken(look, now);
  if (!outcome) {
    // Not found: the namespace was just deleted, or writes are off (client::ShadowEngine).
    if (outcome.error().code != ErrorCode::kNotFound) {
      tell(*look, client::EventType::kWarning, "FailedCreate",
           fmt::format("Error creating job: {}", outcome.error().message), now);
    }
    return give_up(look, outcome.error(), now);
  }
  tell(*look, client::EventType::kNormal, "SuccessfulCreate",
       fmt::format("Created job {}", outcome->string_at({"metadata", "name"})), now);
  skew_.observe(std::chrono::duration<double>(now.wall - *look->plan.due).count());
  workloads::note_started(look->plan.status, active_reference(*outcome), *look->plan.due);
  look->plan.status_changed = true;
  cut_history(look, now);
}

/// The Job's name is taken: by an earlier sync of ours whose status was not written, or by another owner's Job.
void CronJobController::on_name_taken(const LookPtr& look, Now) {
  const std::string name = workloads::cron_job_name(*look->cron, *look->plan.due);
  shared_.client.get(jobs_path(look->cron->metadata, name), [this, look](const Result<api::Json>& outcome, Now then) {
    const auto job = outcome ? api::decode<api::Job>(*outcome) : Result<api::Job>(outcome.error());
    if (!job) return give_up(look, job.error(), then);
    const api::OwnerReference* owner = api::controller_of(job->metadata);
    if (owner != nullptr && owner->uid == look->cron->metadata.uid) {
      workloads::note_started(look->plan.status, active_reference(*outcome), *look->plan.due);
      look->plan.status_changed = true;
    }
    cut_history(look, then);
  });
}

void CronJobController::cut_history(const LookPtr& look, Now now) {
  if (look->next < look->plan.outlived.size()) {
    const api::ObjectMeta& job = look->plan.outlived[look->next++]->metadata;
    return remove_job(look, {.name = job.name, .uid = job.uid}, &CronJobController::cut_history);
  }
  write_status(look, now);
}

void CronJobController::write_status(const LookPtr& look, Now now) {
  if (!look->plan.status_changed) return end(look, now);
  const api::ObjectMeta& metadata = look->cron->metadata;
  api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}})},
       {"status", cron_status_document(look->plan.status)}});
  shared_.client.patch(client::object_path(api::CronJob::kApiVersion, "cronjobs", metadata.ns, metadata.name, "status"),
                       client::PatchType::kMerge, std::move(patch),
                       [this, look](const Result<api::Json>& outcome, Now then) {
                         if (!outcome) return give_up(look, outcome.error(), then);
                         const auto version = cron_version(outcome->string_at({"metadata", "resourceVersion"}));
                         const std::string& uid = look->cron->metadata.uid;
                         if (version && key_by_uid_.contains(uid)) written_[uid] = {*version, then.mono};
                         end(look, then);
                       });
}

void CronJobController::end(const LookPtr& look, Now now) {
  queue_.done(look->key);
  queue_.forget(look->key);
  if (look->plan.look_again) queue_.add(look->key, now.mono + *look->plan.look_again);
}

void CronJobController::give_up(const LookPtr& look, const Error& error, Now now) {
  if (error.code != ErrorCode::kConflict && error.code != ErrorCode::kNotFound) {
    shared_.log.warning("cron job sync failed", {{"cron_job", look->key}, {"error", error.text()}});
  }
  queue_.done(look->key);
  queue_.retry(look->key, now.mono);
}

}  // namespace spillway::controllers
