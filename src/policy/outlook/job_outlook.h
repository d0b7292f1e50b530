// How a Job goes on: what of it is done, what it waits for, what becomes of it. policy/workloads/job_plan.h decides;
// this says what it decided, from what the API server shows. Thread: any (pure). Bounds: kRowsMax pods are named.
// Source: Kubernetes docs, "Jobs"; spec "Scheduler and workloads", 14.
#pragma once

#include "api/object/job.h"
#include "policy/outlook/outlook.h"
#include "policy/workloads/pod_state.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::outlook {

/// Pods that were not made: what the last event about it says.
struct RefusedPods {
  std::string message;
  WallTime at;
};

struct JobScene {
  const api::Job& job;
  std::optional<std::vector<workloads::PodPtr>> pods;  // that it owns, by name; nullopt: they could not be read
  std::optional<RefusedPods> refused;
};

Outlook explain_job(const JobScene& scene, WallTime now);

}  // namespace spillway::outlook
