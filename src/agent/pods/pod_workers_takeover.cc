// Pods that are on the machine from before: claimed by their workers, or ended.
#include "agent/contract/kill_grace.h"
#include "agent/pods/pod_status.h"
#include "agent/pods/pod_takeover.h"
#include "agent/pods/pod_workers.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

/// Takes over what is left of the pod on the machine. True: something of it runs.
bool PodWorkers::claim(PodWorker& worker, Now now) {
  const auto found = found_.find(worker.uid());
  if (found == found_.end()) return false;
  const FoundPod left = std::move(found->second);
  found_.erase(found);
  agent::take_over(worker, left, now);
  if (!is_alive(left)) return false;
  prober_.add(*worker.pod, now);
  resume_probes(worker, worker.pod->status);
  worker.resumes = api::is_static(*worker.pod);
  return true;
}

void PodWorkers::take_over(const PodsFound& found) {
  for (const FoundPod& pod : found.pods) found_.insert_or_assign(pod.uid, pod);
}

void PodWorkers::end_unclaimed() {
  for (const auto& [uid, pod] : std::exchange(found_, {})) {
    context_.log.info("remaining containers of a deleted pod are ended", {{"pod_uid", uid}});
    context_.host_commands.emplace_back(StopPod{uid, seconds(kStopSecondsMin)});
    context_.host_commands.emplace_back(RemovePod{uid});
  }
}

PodRemains PodWorkers::remains_of(const std::string& uid) const {
  if (found_.contains(uid)) return PodRemains::kKept;
  const PodWorker* worker = find(uid);
  if (worker == nullptr) return PodRemains::kContent;
  if (worker->phase != WorkerPhase::kTerminated) return PodRemains::kKept;
  return worker->content == PodContent::kRemoved ? PodRemains::kContent : PodRemains::kRuntime;
}

bool PodWorkers::was_admitted(const std::string& uid) const {
  const PodWorker* worker = find(uid);
  return worker != nullptr && worker->content == PodContent::kCreated;
}

/// Restores the probe results of containers that kept running, from the status reported earlier.
void PodWorkers::resume_probes(const PodWorker& worker, const api::PodStatus& told) {
  for (const auto* list : worker.run_lists()) {
    for (const ContainerRun& run : *list) {
      const api::ContainerStatus* before = told_of(told, run.spec->name);
      if (run.state != ContainerRun::State::kRunning || run.container_id.empty()) continue;
      if (before == nullptr || before->container_id != run.container_id) continue;
      prober_.resume(worker.uid(), run.spec->name, container_id(worker.uid(), run.spec->name, run.restart_count),
                     {.started = before->started.value_or(false), .ready = before->ready});
    }
  }
}

/// The status of a static pod is that of its mirror, which arrives later.
void PodWorkers::resume_static(PodWorker& worker, const api::PodStatus& told, Now now) {
  if (worker.phase != WorkerPhase::kSyncing || !worker.resumes) return;
  worker.resumes = false;
  if (told.start_time) worker.start_time = told.start_time;
  worker.status.conditions = told.conditions;
  resume_probes(worker, told);
  report(worker, now);
}

}  // namespace spillway::agent
