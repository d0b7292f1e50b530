// The outlook of a Job: its progress, the objects that it waits for, and its next step. policy/workloads/job_plan.h
// decides; this explains the decision from the objects in the API server. Thread: any (pure). Bounds: kRowsMax pods are
// named. Source: Kubernetes docs, "Jobs"; spec "Scheduler and workloads", 14.
#pragma once

#include "api/object/job.h"
#include "policy/outlook/outlook.h"
#include "policy/workloads/pod_state.h"

#include <optional>
#include <string>
#include <vector>

namespace spillway::outlook {

/// Pods that could not be created, with the text of the last event about it.
struct RefusedPods {
  std::string message;
  WallTime at;
};

struct JobScene {
  const api::Job& job;
  // pods that the Job owns, by name; nullopt: they could not be read
  std::optional<std::vector<workloads::PodPtr>> pods;
  std::optional<RefusedPods> refused;
};

Outlook explain_job(const JobScene& scene, WallTime now);

}  // namespace spillway::outlook
