// The end of pods: on request, by force, or by themselves; and the work that remains then.
#include "agent/contract/kill_grace.h"
#include "agent/pod_state/container_plan.h"
#include "agent/pods/pod_workers.h"

#include <algorithm>
#include <utility>

namespace spillway::agent {

void PodWorkers::exceed_deadline(PodWorker& worker, Now now) {
  context_.log.info("pod was active longer than its deadline",
                    {{"pod", worker.pod->key().text()}, {"pod_uid", worker.uid()}});
  events_.record(worker, {}, client::EventType::kNormal, kDeadlineExceeded, kDeadlineExceededMessage, now);
  stop_.force(worker, deadline_exceeded(), now);
}

void PodWorkers::evict(const eviction::EvictPod& action, Urgency urgency, Now now) {
  PodWorker* worker = pods_.find(action.uid);
  if (worker == nullptr || worker->phase == WorkerPhase::kTerminated) return;
  stop_.force(*worker, evicted(action), now);
  if (urgency == Urgency::kEmergency) kill_now(action.uid);
}

void PodWorkers::shut_down(const std::string& uid, std::int64_t grace_seconds, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || worker->phase == WorkerPhase::kTerminated) return;
  stop_.force(*worker, shut_down_with(grace_seconds), now);
}

bool PodWorkers::is_reported(const std::string& uid) const {
  return pods_.find(uid) == nullptr || (is_finished(uid) && status_.is_written(uid));
}

void PodWorkers::preempt(const admission::Victim& victim, Now now) {
  PodWorker* worker = pods_.find(victim.uid);
  if (worker == nullptr || worker->phase == WorkerPhase::kTerminated) return;
  events_.record(*worker, {}, client::EventType::kWarning, admission::kPreempting, admission::kPreemptedMessage, now);
  stop_.force(*worker, {.ending = admission::preempted(), .grace_period_seconds = {}}, now);
}

void PodWorkers::kill_now(const std::string& uid) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kTerminating) return;
  stop_.kill(*worker);
}

void PodWorkers::on_pod_stopped(const PodStopped& event, Now now) {
  PodWorker* worker = pods_.find(event.uid);
  if (worker == nullptr || worker->phase != WorkerPhase::kTerminating) return;
  stop_.on_stopped(*worker);
  calls_.forget(event.uid);
  probes_.remove(event.uid);
  context_.log.info("pod stopped", {{"pod", worker->pod->key().text()}, {"pod_uid", event.uid}});
  const Notices::Hold until_all_is_done(notices_);
  notices_.add([this, uid = event.uid, now] {
    if (on_finished_) on_finished_(uid, now);
    admission_.on_finished(uid, now);
    resizes_.retry(ResizeTrigger::kPodTerminated, now);
  });
  report(*worker, now);
  removal_.advance(*worker, now);
}

void PodWorkers::gone(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr) return;
  worker->object = PodObject::kGone;
  status_.forget(uid);
  if (worker->phase == WorkerPhase::kTerminated) {
    forget(uid, now);
  } else if (worker->phase != WorkerPhase::kTerminating) {
    stop_.begin(*worker, now);
  }
}

void PodWorkers::forget(const std::string& known, Now now) {
  const std::string uid = known;  // the argument may be the worker's own string
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr) return;
  timers_.cancel(*worker);
  stop_.forget(*worker);
  probes_.remove(uid);
  calls_.forget(uid);
  removal_.remove_content(*worker);
  status_.forget(uid);
  resizes_.forget(uid);
  pods_.erase(uid);
  notices_.add([this, uid, now] {
    if (on_forgotten_) on_forgotten_(uid, now);
    resizes_.retry(ResizeTrigger::kPodsRemoved, now);
  });
}

}  // namespace spillway::agent
