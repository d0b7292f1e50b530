#include "controllers/workloads/batch_controllers.h"

#include "controllers/workloads/cron_job.h"
#include "controllers/workloads/finished_jobs.h"
#include "controllers/workloads/job.h"

#include <optional>

namespace spillway::controllers {

namespace {

Shared with_events(const Shared& shared, client::EventRecorder& events) {
  return {shared.client, events,        shared.log,          shared.nodes,
          shared.pods,   shared.leases, shared.replica_sets, shared.daemon_sets};
}

}  // namespace

struct BatchControllers::Parts {
  Parts(Enabled enabled, const Shared& shared, const Rng& rng, telemetry::Registry& metrics)
      : job_events(shared.client, rng.fork("job events"), "job-controller"),
        jobs(shared.client, client::object_path("batch/v1", "jobs", {})),
        cron_job_events(shared.client, rng.fork("cron job events"), "cronjob-controller") {
    if (enabled.cron_job) {
      cron_jobs.emplace(shared.client, client::object_path("batch/v1", "cronjobs", {}));
      cron_job.emplace(with_events(shared, cron_job_events), *cron_jobs, jobs, metrics);
    }
    if (enabled.job) job.emplace(with_events(shared, job_events), jobs, metrics);
    if (enabled.ttl_after_finished) finished_jobs.emplace(shared.client, shared.log, jobs, metrics);
  }

  client::EventRecorder job_events;
  client::Informer<api::Job> jobs;
  std::optional<JobController> job;
  std::optional<FinishedJobs> finished_jobs;
  client::EventRecorder cron_job_events;
  std::optional<client::Informer<api::CronJob>> cron_jobs;
  std::optional<CronJobController> cron_job;
};

BatchControllers::BatchControllers(Enabled enabled, const Shared& shared, const Rng& rng, telemetry::Registry& metrics)
    : parts_(std::make_unique<Parts>(enabled, shared, rng, metrics)) {}

BatchControllers::~BatchControllers() = default;

void BatchControllers::start(Now now) {
  if (parts_->cron_job) parts_->cron_job->start(now);
  if (parts_->job) parts_->job->start(now);
  if (parts_->finished_jobs) parts_->finished_jobs->start(now);
}

void BatchControllers::run(Now now) {
  if (parts_->cron_job) parts_->cron_job->run(now);
  if (parts_->job) parts_->job->run(now);
  if (parts_->finished_jobs) parts_->finished_jobs->run(now);
}

}  // namespace spillway::controllers
