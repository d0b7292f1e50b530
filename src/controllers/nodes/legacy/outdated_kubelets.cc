#include "controllers/nodes/legacy/outdated_kubelets.h"

#include "controllers/shared/paths.h"
#include "policy/lifecycle/lines/kubelet_version.h"

namespace spillway::controllers {

bool OutdatedKubelets::marks_pods_of(const api::Node& node) const {
  return !lifecycle::is_outdated_kubelet(node.status.node_info.kubelet_version, lifecycle::kKubeletMarksPods);
}

void OutdatedKubelets::on_pod(const PodPtr& pod) {
  if (!pod->metadata.deletion_timestamp) return;
  const auto node = shared_.nodes.cache().find(pod->spec.node_name);
  if (!node) return;  // the garbage collection of pods deals with it
  const std::string& version = node->status.node_info.kubelet_version;
  if (lifecycle::is_outdated_kubelet(version, lifecycle::kKubeletDeletesGracefully)) force(pod);
}

/// Deletes without grace, once for each pod while the call is in flight.
void OutdatedKubelets::force(const PodPtr& pod) {
  if (!forcing_.insert(pod->metadata.uid).second) return;
  shared_.log.info("pod deleted by force: its kubelet is too old to end it",
                   {{"pod", pod->key().text()}, {"node", pod->spec.node_name}});
  api::Json options = delete_options(*pod);
  options["gracePeriodSeconds"] = 0;
  shared_.client.remove(pod_path(*pod), options,
                        [this, pod](const Result<api::Json>& outcome, Now) { on_forced(*pod, outcome); });
}

void OutdatedKubelets::on_forced(const api::Pod& pod, const Result<api::Json>& outcome) {
  forcing_.erase(pod.metadata.uid);
  if (outcome || outcome.error().code == ErrorCode::kNotFound) return;
  shared_.log.warning("pod was not deleted", {{"pod", pod.key().text()}, {"error", outcome.error().text()}});
}

}  // namespace spillway::controllers
