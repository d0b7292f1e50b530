#include "agent/pod_state/pod_table.h"

#include "policy/admission/arrival.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spillway::agent {
namespace {

bool precedes(const api::Pod& a, const api::Pod& b) {
  return std::tie(a.metadata.ns, a.metadata.name, a.metadata.uid) <
         std::tie(b.metadata.ns, b.metadata.name, b.metadata.uid);
}

}  // namespace

const PodWorker* PodTable::find(const std::string& uid) const {
  const auto it = workers_.find(uid);
  return it == workers_.end() ? nullptr : &it->second;
}

PodWorker* PodTable::find(const std::string& uid) {
  return const_cast<PodWorker*>(std::as_const(*this).find(uid));
}

PodWorker* PodTable::find_syncing(const std::string& uid) {
  PodWorker* worker = find(uid);
  return worker == nullptr || worker->phase != WorkerPhase::kSyncing ? nullptr : worker;
}

std::shared_ptr<const api::Pod> PodTable::find_waiting(const std::string& uid) const {
  const PodWorker* worker = find(uid);
  return worker == nullptr || worker->phase != WorkerPhase::kWaiting ? nullptr : worker->pod;
}

bool PodTable::is_finished(const std::string& uid) const {
  const PodWorker* worker = find(uid);
  return worker == nullptr || worker->phase == WorkerPhase::kTerminated;
}

std::vector<const api::Pod*> PodTable::active() const {
  std::vector<const api::Pod*> pods;
  for (const auto& [uid, worker] : workers_) {
    if (worker.phase == WorkerPhase::kWaiting) continue;
    const admission::WorkerState state{.termination_requested = worker.phase != WorkerPhase::kSyncing,
                                       .terminated = worker.phase == WorkerPhase::kTerminated};
    if (admission::is_active(*worker.pod, worker.status.phase, state)) pods.push_back(worker.pod.get());
  }
  std::ranges::sort(pods, [](const api::Pod* a, const api::Pod* b) { return precedes(*a, *b); });
  return pods;
}

std::vector<api::Pod> PodTable::all() const {
  std::vector<api::Pod> pods;
  for (const PodWorker* worker : sorted()) {
    pods.push_back(*worker->pod);
    pods.back().status = worker->status;
  }
  return pods;
}

std::vector<const PodWorker*> PodTable::sorted() const {
  std::vector<const PodWorker*> workers;
  for (const auto& [uid, worker] : workers_) workers.push_back(&worker);
  std::ranges::sort(workers, [](const PodWorker* a, const PodWorker* b) { return precedes(*a->pod, *b->pod); });
  return workers;
}

}  // namespace spillway::agent
