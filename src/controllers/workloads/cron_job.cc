#include "controllers/workloads/cron_job.h"

#include "base/number.h"
#include "controllers/workloads/cron_job_sync.h"

#include <cstdint>
#include <memory>

namespace spillway::controllers {

namespace {

/// A sync waits that long for the cache to show the status of the last one. A cache shows it within moments; ten
/// seconds later its watch is broken, and a sync that meets an old version ends with a conflict.
constexpr Duration kUnseenCronStatusMax = seconds(10);

}  // namespace

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
  while (const std::optional<std::string> key = queue_metrics_.take(queue_, now.mono)) sync(*key, now);
  queue_metrics_.show(queue_, now.mono);
  arm();
}

void CronJobController::arm() {
  wake_up_.set(shared_.client, queue_.next_due());
}

void CronJobController::sync(const std::string& key, Now now) {
  const CronJobPtr cron = cron_jobs_.cache().find(key);
  if (!cron) {
    queue_.done(key);
    return queue_.forget(key);
  }
  if (const auto written = written_.find(cron->metadata.uid); written != written_.end()) {
    const auto shown = parse_whole<std::uint64_t>(cron->metadata.resource_version);
    const Instant waits_until = written->second.at + kUnseenCronStatusMax;  // bounds the wait if the watch is broken
    if (shown && *shown < written->second.version && now.mono < waits_until) {
      queue_.done(key);
      return queue_.add(key, waits_until);
    }
    written_.erase(written);
  }
  const CronJobTools tools{shared_, jobs_, skew_, key_by_uid_, written_, queue_};
  std::make_shared<CronJobSync>(tools, cron)->advance(now);
}

}  // namespace spillway::controllers
