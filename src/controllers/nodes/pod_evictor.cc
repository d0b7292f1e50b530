#include "controllers/nodes/pod_evictor.h"

#include "controllers/shared/paths.h"
#include "policy/lifecycle/legacy_eviction.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace spillway::controllers {

namespace {

api::Json node_lost_patch(const api::Pod& pod) {
  return api::Json::object(
      {{"metadata", api::Json::object({{"uid", pod.metadata.uid}, {"resourceVersion", pod.metadata.resource_version}})},
       {"status",
        api::Json::object({{"reason", "NodeLost"},
                           {"message", lifecycle::node_lost_message(pod.spec.node_name, pod.metadata.name)}})}});
}

}  // namespace

void PodEvictor::evict(const api::Node& node, const std::vector<PodPtr>& pods,
                       std::function<void(bool all, Now now)> done, Now now) {
  const std::string& name = node.metadata.name;
  if (!pods.empty()) {
    shared_.events.record(client::reference_to(node), client::EventType::kNormal, "DeletingAllPods",
                          fmt::format("Node {} event: Deleting all Pods from Node {}.", name, name), now);
  }
  std::vector<const api::DaemonSet*> daemon_sets;
  for (const auto& [key, set] : shared_.daemon_sets.cache().all()) daemon_sets.push_back(set.get());
  const auto run = std::make_shared<Run>(Run{{}, 0, true, 0, name, std::move(done)});
  for (const PodPtr& pod : pods) {
    const lifecycle::PodEvictionStep step = lifecycle::plan_pod_eviction(*pod, name, daemon_sets);
    if (step.set_node_lost || step.delete_pod) run->steps.emplace_back(pod, step);
    run->remaining += step.remains ? 1 : 0;
  }
  next(run, now);
}

void PodEvictor::next(const std::shared_ptr<Run>& run, Now now) {
  if (run->at == run->steps.size()) {
    if (run->remaining > 0) {
      shared_.log.info("pods awaiting deletion due to node controller eviction",
                       {{"node", run->node}, {"pods", run->remaining}});
    }
    return run->done(run->all, now);
  }
  const auto& [pod, step] = run->steps[run->at++];
  if (step.set_node_lost) {
    mark_lost(run, pod, step.delete_pod);
  } else {
    remove(run, pod, now);
  }
}

void PodEvictor::force(const PodPtr& pod) {
  if (!forcing_.insert(pod->metadata.uid).second) return;
  shared_.log.info("pod deleted by force: its kubelet is too old to end it",
                   {{"pod", pod->key().text()}, {"node", pod->spec.node_name}});
  api::Json options = delete_options(*pod);
  options["gracePeriodSeconds"] = 0;
  shared_.client.remove(pod_path(*pod), options, [this, pod](const Result<api::Json>& outcome, Now) {
    forcing_.erase(pod->metadata.uid);
    if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
    shared_.log.warning("pod was not deleted", {{"pod", pod->key().text()}, {"error", outcome.error().text()}});
  });
}

void PodEvictor::mark_lost(const std::shared_ptr<Run>& run, const PodPtr& pod, bool then_delete) {
  shared_.client.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, node_lost_patch(*pod),
                       [this, run, pod, then_delete](const Result<api::Json>& outcome, Now now) {
                         // A conflict ends the turn of this pod; any other failure does not keep it alive.
                         const bool conflict = !outcome && outcome.error().code == ErrorCode::kConflict;
                         run->all = run->all && !conflict;
                         if (conflict || !then_delete) return next(run, now);
                         remove(run, pod, now);
                       });
}

void PodEvictor::remove(const std::shared_ptr<Run>& run, const PodPtr& pod, Now now) {
  shared_.log.info("evicting pod", {{"pod", pod->key().text()}, {"node", pod->spec.node_name}});
  shared_.events.record(
      client::reference_to(*pod), client::EventType::kNormal, "NodeControllerEviction",
      fmt::format("Marking for deletion Pod {} from Node {}", pod->metadata.name, pod->spec.node_name), now);
  shared_.client.remove(pod_path(*pod), delete_options(*pod), [this, run](const Result<api::Json>& outcome, Now then) {
    const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
    if (outcome || (gone && !profile_.missing_pod_is_error)) return next(run, then);
    run->done(false, then);  // the pods behind it have their turn with the next attempt
  });
}

}  // namespace spillway::controllers
