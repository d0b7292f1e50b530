#include "controllers/workloads/replica_count.h"

#include "controllers/shared/owned_pods.h"
#include "policy/workloads/replacement_first.h"

#include <algorithm>

namespace spillway::controllers {

void ReplicaCount::count(const api::Pod& pod, std::int32_t by) {
  if (!selector_.matches(pod.metadata.labels)) {
    if (!pod.metadata.deletion_timestamp) strangers_ += by;
    return;
  }
  selected_ += by;
  if (!is_active(pod)) return;
  if (replaced_ == ReplacedPods::kLeftOut && workloads::is_being_replaced(pod)) return;
  active_.replicas += by;
  const bool all_labels = std::ranges::all_of(labels_, [&pod](const auto& label) {
    const auto found = pod.metadata.labels.find(label.first);
    return found != pod.metadata.labels.end() && found->second == label.second;
  });
  if (all_labels) active_.fully_labeled_replicas += by;
  if (is_ready(pod)) {
    active_.ready_replicas += by;
    active_.available_replicas += by;  // unless the set has minReadySeconds, which needs the present time
  }
}

}  // namespace spillway::controllers
