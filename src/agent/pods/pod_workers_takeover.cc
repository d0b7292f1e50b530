// Pods that are on the machine from before, claimed by their workers.
#include "agent/pods/pod_takeover.h"
#include "agent/pods/pod_workers.h"

#include <optional>

namespace spillway::agent {

/// Takes over the containers that an earlier process left running for the pod. True: at least one runs.
bool PodWorkers::claim(PodWorker& worker, Now now) {
  const std::optional<FoundPod> left = found_.take(worker.uid());
  if (!left) return false;
  agent::take_over(worker, *left, now);
  if (!is_alive(*left)) return false;
  probes_.add(*worker.pod, now);
  probes_.resume(worker, worker.pod->status);
  worker.resumes = api::is_static(*worker.pod);
  return true;
}

PodRemains PodWorkers::remains_of(const std::string& uid) const {
  if (found_.contains(uid)) return PodRemains::kKept;
  const PodWorker* worker = pods_.find(uid);
  if (worker == nullptr) return PodRemains::kContent;
  if (worker->phase != WorkerPhase::kTerminated) return PodRemains::kKept;
  return worker->content == PodContent::kRemoved ? PodRemains::kContent : PodRemains::kRuntime;
}

bool PodWorkers::was_admitted(const std::string& uid) const {
  const PodWorker* worker = pods_.find(uid);
  return worker != nullptr && worker->content == PodContent::kCreated;
}

/// The status of a static pod is that of its mirror, which arrives later.
void PodWorkers::resume_static(PodWorker& worker, const api::PodStatus& reported, Now now) {
  if (worker.phase != WorkerPhase::kSyncing || !worker.resumes) return;
  worker.resumes = false;
  if (reported.start_time) worker.start_time = reported.start_time;
  worker.status.conditions = reported.conditions;
  probes_.resume(worker, reported);
  report(worker, now);
}

}  // namespace spillway::agent
