#include "agent/pods/pod_sandboxes.h"

#include "agent/pod_state/container_plan.h"

#include <fmt/format.h>

namespace spillway::agent {

bool PodSandboxes::ensure(PodWorker& worker, Now now) {
  if (!worker.needs_sandbox || worker.sandbox == PodSandbox::kRuns) return true;
  if (worker.sandbox == PodSandbox::kAsked) return false;
  if (worker.sandbox == PodSandbox::kLost) {
    if (holds_container(worker)) return false;
    if (const auto delay = worker.sandbox_back_off.ask(now.mono, worker.sandbox_lost_at)) {
      timers_.arm_retry(worker, *worker.sandbox_lost_at + *delay);
      return false;
    }
    repeat_init_containers(worker);
  }
  worker.sandbox = PodSandbox::kAsked;
  request(worker);
  return false;
}

/// The RuntimeClass is read on every attempt: it may be created after the pod.
void PodSandboxes::request(PodWorker& worker) {
  const std::string& name = worker.pod->spec.runtime_class_name;
  if (name.empty()) {
    context_.host_commands.emplace_back(RunSandbox{worker.uid()});
    return;
  }
  context_.api.get(
      client::object_path("node.k8s.io/v1", "runtimeclasses", {}, name),
      [this, uid = worker.uid()](const Result<api::Json>& answer, Now now) { on_runtime_class(uid, answer, now); });
}

void PodSandboxes::on_runtime_class(const std::string& uid, const Result<api::Json>& answer, Now now) {
  PodWorker* worker = pods_.find_syncing(uid);
  if (worker == nullptr) return;
  if (answer) {
    worker->handler = answer->string_at({"handler"});
    context_.host_commands.emplace_back(RunSandbox{uid, worker->handler});
  } else if (answer.error().code == ErrorCode::kNotFound) {
    const std::string& name = worker->pod->spec.runtime_class_name;
    fail(*worker, fmt::format("runtimeclass.node.k8s.io \"{}\" not found", name), now);
  } else {
    fail(*worker, answer.error().message, now);
  }
}

void PodSandboxes::on_ran(const SandboxRan& event, Now now) {
  PodWorker* worker = pods_.find_syncing(event.uid);
  if (worker == nullptr) return;
  if (!event.problem.empty()) return fail(*worker, event.problem, now);
  worker->sandbox = PodSandbox::kRuns;
  worker->sandbox_ran_at = now.mono;
  worker->pod_ips = event.ips;
  sync_.sync(*worker, now);
}

void PodSandboxes::fail(const PodWorker& worker, const std::string& problem, Now now) {
  events_.record(worker, {}, client::EventType::kWarning, "FailedCreatePodSandBox",
                 "Failed to create pod sandbox: " + problem, now);
  context_.api.at(now.mono + kRetry, [this, uid = worker.uid()](Now then) { retry(uid, then); });
}

void PodSandboxes::retry(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find_syncing(uid);
  if (worker == nullptr) return;
  worker->sandbox = PodSandbox::kNone;
  sync_.sync(*worker, now);
}

void PodSandboxes::on_lost(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find_syncing(uid);
  if (worker == nullptr || worker->sandbox != PodSandbox::kRuns) return;
  worker->sandbox = PodSandbox::kLost;
  worker->sandbox_lost_at = now.mono;
  context_.log.info("pod lost its sandbox", {{"pod", worker->pod->key().text()}, {"pod_uid", uid}});
  sync_.sync(*worker, now);
  if (worker->phase != WorkerPhase::kSyncing) return;  // the pod is ending: nothing is started again
  events_.record(*worker, {}, client::EventType::kNormal, "SandboxChanged",
                 "Pod sandbox changed, it will be killed and re-created.", now);
}

}  // namespace spillway::agent
