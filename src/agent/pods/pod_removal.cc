#include "agent/pods/pod_removal.h"

#include <utility>

namespace spillway::agent {

void PodRemoval::advance(PodWorker& worker, Now now) {
  if (worker.phase != WorkerPhase::kTerminated) return;
  if (worker.object == PodObject::kGone || worker.object == PodObject::kRetired) return forget_(worker.uid(), now);
  if (!status_.is_written(worker.uid())) return;
  // Only the object of an evicted pod is kept; the logs of pods that failed by themselves are kept with it.
  if (worker.forced_end) remove_content(worker);
  if (worker.pod->metadata.deletion_timestamp) delete_object(worker);
}

void PodRemoval::remove_content(PodWorker& worker) {
  if (worker.content == PodContent::kNever || worker.content == PodContent::kRemoved) return;
  worker.content = PodContent::kRemoved;
  context_.host_commands.emplace_back(RemovePod{worker.uid()});
}

void PodRemoval::delete_object(PodWorker& worker) {
  if (std::exchange(worker.object, PodObject::kDeleting) == PodObject::kDeleting) return;
  const std::string path = client::object_path("v1", "pods", worker.pod->metadata.ns, worker.pod->metadata.name);
  const api::Json options = api::Json::object({{"apiVersion", "v1"},
                                               {"kind", "DeleteOptions"},
                                               {"gracePeriodSeconds", 0},
                                               {"preconditions", api::Json::object({{"uid", worker.uid()}})}});
  context_.api.remove(path, options, [this, uid = worker.uid()](const Result<api::Json>& outcome, Now answered) {
    on_deleted(uid, outcome, answered);
  });
}

void PodRemoval::on_deleted(const std::string& uid, const Result<api::Json>& outcome, Now now) {
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;  // the watch reports the rest
  context_.api.at(now.mono + kRetry, [this, uid](Now later) { retry(uid, later); });
}

void PodRemoval::retry(const std::string& uid, Now now) {
  PodWorker* worker = pods_.find(uid);
  if (worker == nullptr || worker->object != PodObject::kDeleting) return;
  worker->object = PodObject::kPresent;
  advance(*worker, now);
}

}  // namespace spillway::agent
