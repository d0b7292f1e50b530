// Port of the parts of PodWorkers: what follows when one of them has changed the state of a pod. Thread: loop.
#pragma once

#include "agent/pod_state/pod_worker.h"
#include "base/time.h"

namespace spillway::agent {

class PodSync {
 public:
  virtual ~PodSync() = default;
  /// Plans the containers of a pod in kSyncing anew, acts on the plan and reports the status. The pod may be ending
  /// when it returns.
  virtual void sync(PodWorker& worker, Now now) = 0;
  /// Computes the status of the pod and writes it to the API server, if it differs.
  virtual void report(PodWorker& worker, Now now) = 0;

  /// Syncs a pod in kSyncing, reports any other.
  void sync_or_report(PodWorker& worker, Now now) {
    worker.phase == WorkerPhase::kSyncing ? sync(worker, now) : report(worker, now);
  }
};

}  // namespace spillway::agent
