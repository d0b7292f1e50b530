#include "controllers/nodes/pod_marker.h"

#include "api/text/time_text.h"
#include "policy/lifecycle/pod_marking.h"

#include <memory>
#include <utility>

namespace spillway::controllers {

namespace {

api::Json not_ready_patch(const api::Pod& pod, bool guarded, Now now) {
  const api::Json condition =
      api::Json::object({{"type", "Ready"}, {"status", "False"}, {"lastTransitionTime", api::format_time(now.wall)}});
  api::Json metadata = api::Json::object({{"uid", pod.metadata.uid}});
  if (guarded) metadata["resourceVersion"] = pod.metadata.resource_version;
  return api::Json::object({{"metadata", std::move(metadata)},
                            {"status", api::Json::object({{"conditions", api::Json::array({condition})}})}});
}

}  // namespace

void PodMarker::mark(const std::vector<PodPtr>& pods, std::function<void(bool all, Now now)> done, Now now) {
  std::vector<PodPtr> to_write;
  for (const PodPtr& pod : pods) {
    if (lifecycle::plan_pod_not_ready(*pod, profile_.facts.mark_pods_skips_false) == lifecycle::PodReadyStep::kWrite) {
      to_write.push_back(pod);
    }
  }
  if (to_write.empty()) return done(true, now);
  const auto progress = std::make_shared<Progress>(Progress{to_write.size(), true, std::move(done)});
  for (const PodPtr& pod : to_write) {
    if (profile_.facts.mark_pods_events) {
      shared_.events.record(client::reference_to(*pod), client::EventType::kWarning, "NodeNotReady",
                            "Node is not ready", now);
    }
    shared_.client.patch(client::object_path("v1", "pods", pod->metadata.ns, pod->metadata.name, "status"),
                         client::PatchType::kStrategicMerge,
                         not_ready_patch(*pod, !profile_.remedies.mark_changed_pods, now),
                         [this, pod, progress](const Result<api::Json>& outcome, Now then) {
                           on_marked(*pod, *progress, outcome, then);
                         });
  }
}

void PodMarker::on_marked(const api::Pod& pod, Progress& progress, const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code != ErrorCode::kNotFound) {
    progress.all = false;
    shared_.log.warning("pod was not marked not ready",
                        {{"pod", pod.key().text()}, {"node", pod.spec.node_name}, {"error", outcome.error().text()}});
  }
  if (--progress.open == 0) progress.done(progress.all, now);
}

}  // namespace spillway::controllers
