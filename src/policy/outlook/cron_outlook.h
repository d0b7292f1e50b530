// The outlook of a CronJob: its next run, the reason why it does not run, and the results of its runs.
// policy/workloads/cron_plan.h decides; this explains the decision from the objects in the API server. Thread: any
// (pure). Bounds: kRowsMax Jobs are named. Source: Kubernetes docs, "CronJob"; spec "Scheduler and workloads", 15.
#pragma once

#include "api/object/job.h"
#include "policy/outlook/outlook.h"
#include "policy/workloads/cron_plan.h"

#include <optional>
#include <vector>

namespace spillway::outlook {

struct CronScene {
  const api::CronJob& cron;
  std::optional<std::vector<workloads::JobPtr>> jobs;  // Jobs that the CronJob owns; nullopt: they could not be read
};

Outlook explain_cron_job(const CronScene& scene, WallTime now);

}  // namespace spillway::outlook
