// When a CronJob runs next, why it does not, and how its runs ended. policy/workloads/cron_plan.h decides; this says
// what it decided, from what the API server shows. Thread: any (pure). Bounds: kRowsMax Jobs are named. Source:
// Kubernetes docs, "CronJob"; spec "Scheduler and workloads", 15.
#pragma once

#include "api/object/job.h"
#include "policy/outlook/outlook.h"
#include "policy/workloads/cron_plan.h"

#include <optional>
#include <vector>

namespace spillway::outlook {

struct CronScene {
  const api::CronJob& cron;
  std::optional<std::vector<workloads::JobPtr>> jobs;  // that it owns; nullopt: they could not be read
};

Outlook explain_cron_job(const CronScene& scene, WallTime now);

}  // namespace spillway::outlook
