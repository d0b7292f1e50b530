#include "controllers/nodes/pod_gc.h"

#include "api/text/time_text.h"
#include "controllers/shared/paths.h"
#include "policy/lifecycle/finished_record.h"

#include <utility>
#include <vector>

namespace spillway::controllers {

namespace {

using lifecycle::PodGarbage;

api::Json failed_patch(const api::Pod& pod, PodGarbage reason, Now now) {
  api::Json status = api::Json::object({{"phase", "Failed"}});
  const bool counted = pod.metadata.generation != 0;
  if (counted) status["observedGeneration"] = pod.metadata.generation;
  if (reason == PodGarbage::kOrphaned) {
    api::Json condition = api::Json::object({{"type", "DisruptionTarget"},
                                             {"status", "True"},
                                             {"reason", "DeletionByPodGC"},
                                             {"message", "PodGC: node no longer exists"},
                                             {"lastTransitionTime", api::format_time(now.wall)}});
    if (counted) condition["observedGeneration"] = pod.metadata.generation;
    status["conditions"] = api::Json::array({std::move(condition)});
  }
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod.metadata.uid}})}, {"status", std::move(status)}});
}

}  // namespace

void PodGc::pass(Now now) {
  watch_missing_nodes(now);
  collect(now);
  shared_.client.at(now.mono + options_.period, [this](Now then) { pass(then); });
}

lifecycle::PodGcView PodGc::view() {
  pods_.clear();
  for (const auto& [key, pod] : shared_.pods.cache().all()) pods_.push_back(pod.get());
  return {pods_, [this](std::string_view name) { return shared_.nodes.cache().find(std::string(name)).get(); }, gone_};
}

void PodGc::watch_missing_nodes(Now now) {
  const auto missing = lifecycle::missing_nodes(view());
  std::erase_if(quarantined_, [&missing](const auto& entry) { return !missing.contains(entry.first); });
  std::erase_if(gone_, [&missing](const std::string& node) { return !missing.contains(node); });
  for (const std::string& node : missing) {
    const Instant since = quarantined_.emplace(node, now.mono).first->second;
    if (now.mono - since >= options_.quarantine && !gone_.contains(node)) confirm_gone(node);
  }
}

void PodGc::confirm_gone(const std::string& node) {
  shared_.client.get(client::object_path("v1", "nodes", {}, node),
                     [this, node](const Result<api::Json>& outcome, Now now) { on_node_read(node, outcome, now); });
}

void PodGc::on_node_read(const std::string& node, const Result<api::Json>& outcome, Now now) {
  if (outcome || outcome.error().code != ErrorCode::kNotFound || !quarantined_.contains(node)) return;
  gone_.insert(node);
  collect(now);
}

void PodGc::collect(Now now) {
  for (const lifecycle::PodToCollect& each : lifecycle::pods_to_collect(view(), options_.finished)) {
    const PodPtr pod = shared_.pods.cache().find(client::key_of(each.pod->metadata));
    const bool ends_first = each.reason == PodGarbage::kOrphaned || each.reason == PodGarbage::kOutOfService;
    if (ends_first) {
      finish(pod, each.reason, now);
    } else {
      force_delete(pod, each.reason);
    }
  }
}

void PodGc::record_collected(Now now) {
  std::vector<const api::Pod*> finished;
  for (const PodPtr& pod : unrecorded_) finished.push_back(pod.get());
  for (const lifecycle::FinishedRecord& record : lifecycle::records_of(finished)) {
    shared_.events.record(record.about, client::EventType::kNormal, "FinishedPodsCollected", record.text, now);
  }
  unrecorded_.clear();
}

void PodGc::finish(const PodPtr& pod, PodGarbage reason, Now now) {
  if (api::is_terminal(*pod)) return force_delete(pod, reason);
  if (!in_progress_.insert(pod->metadata.uid).second) return;
  shared_.client.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, failed_patch(*pod, reason, now),
                       [this, pod, reason](const auto& outcome, Now) { on_marked_failed(pod, reason, outcome); });
}

/// After a failure the next run tries again.
void PodGc::on_marked_failed(const PodPtr& pod, PodGarbage reason, const Result<api::Json>& outcome) {
  in_progress_.erase(pod->metadata.uid);
  if (outcome) force_delete(pod, reason);
}

void PodGc::force_delete(const PodPtr& pod, PodGarbage reason) {
  if (!in_progress_.insert(pod->metadata.uid).second) return;
  api::Json options = delete_options(*pod);
  options["gracePeriodSeconds"] = 0;
  shared_.log.info("collecting pod", {{"pod", pod->key().text()},
                                      {"node", pod->spec.node_name},
                                      {"phase", pod->status.phase},
                                      {"reason", lifecycle::to_string(reason)}});
  count("pod_gc_collector_force_delete_pods_total",
        "Number of pods that are being forcefully deleted since the Pod GC Controller started.", *pod, reason);
  shared_.client.remove(pod_path(*pod), options, [this, pod, reason](const Result<api::Json>& outcome, Now now) {
    on_deleted(pod, reason, outcome, now);
  });
}

void PodGc::on_deleted(const PodPtr& pod, PodGarbage reason, const Result<api::Json>& outcome, Now now) {
  in_progress_.erase(pod->metadata.uid);
  const bool fair = reason == PodGarbage::kTerminated && options_.finished.order == lifecycle::FinishedOrder::kFair;
  if (outcome && fair) unrecorded_.push_back(pod);
  if (in_progress_.empty()) record_collected(now);
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
  count("pod_gc_collector_force_delete_pod_errors_total",
        "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.", *pod,
        reason);
  shared_.log.warning("pod was not collected", {{"pod", pod->key().text()}, {"error", outcome.error().text()}});
}

void PodGc::count(std::string_view name, std::string_view help, const api::Pod& pod, PodGarbage reason) {
  metrics_.counter(name, help, {{"namespace", pod.metadata.ns}, {"reason", lifecycle::to_string(reason)}}).add();
}

}  // namespace spillway::controllers
