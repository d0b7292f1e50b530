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
  struct Progress {
    std::size_t open = 0;
    bool all = true;
    std::function<void(bool, Now)> done;
  };

  const std::string& name = node.metadata.name;
  if (!pods.empty()) {
    shared_.events.record(client::reference_to(node), client::EventType::kNormal, "DeletingAllPods",
                          fmt::format("Node {} event: Deleting all Pods from Node {}.", name, name), now);
  }
  std::vector<const api::DaemonSet*> daemon_sets;
  for (const auto& [key, set] : shared_.daemon_sets.cache().all()) daemon_sets.push_back(set.get());
  std::vector<std::pair<PodPtr, lifecycle::PodEvictionStep>> steps;
  for (const PodPtr& pod : pods) {
    const lifecycle::PodEvictionStep step = lifecycle::plan_pod_eviction(*pod, name, daemon_sets);
    if (step.set_node_lost || step.delete_pod) steps.emplace_back(pod, step);
  }
  if (steps.empty()) return done(true, now);
  const auto progress = std::make_shared<Progress>(Progress{steps.size(), true, std::move(done)});
  const Settle settle = [progress](bool good, Now then) {
    progress->all = progress->all && good;
    if (--progress->open == 0) progress->done(progress->all, then);
  };
  for (const auto& [pod, step] : steps) {
    if (step.set_node_lost) {
      mark_lost(pod, step.delete_pod, settle);
    } else {
      remove(pod, settle, now);
    }
  }
}

void PodEvictor::mark_lost(const PodPtr& pod, bool then_delete, Settle settle) {
  shared_.client.patch(pod_path(*pod, "status"), client::PatchType::kStrategicMerge, node_lost_patch(*pod),
                       [this, pod, then_delete, settle](const Result<api::Json>& outcome, Now now) {
                         // A conflict ends the turn of this pod; any other failure does not keep it alive.
                         if (!outcome && outcome.error().code == ErrorCode::kConflict) return settle(false, now);
                         if (!then_delete) return settle(true, now);
                         remove(pod, settle, now);
                       });
}

void PodEvictor::remove(const PodPtr& pod, Settle settle, Now now) {
  shared_.log.info("evicting pod", {{"pod", pod->key().text()}, {"node", pod->spec.node_name}});
  shared_.events.record(
      client::reference_to(*pod), client::EventType::kNormal, "NodeControllerEviction",
      fmt::format("Marking for deletion Pod {} from Node {}", pod->metadata.name, pod->spec.node_name), now);
  shared_.client.remove(pod_path(*pod), delete_options(*pod),
                        [this, settle](const Result<api::Json>& outcome, Now then) {
                          const bool gone = !outcome && outcome.error().code == ErrorCode::kNotFound;
                          settle(outcome || (gone && !profile_.missing_pod_is_error), then);
                        });
}

}  // namespace spillway::controllers
