#include "policy/scheduling/pending_pod.h"

namespace spillway::scheduling {

PendingPod make_pending(const api::Pod& pod) {
  PendingPod pending{&pod, api::effective_requests(pod.spec), api::required_node_affinity(pod.spec), {}};
  const api::Json* terms = pod.spec.affinity.at({"nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"});
  if (terms == nullptr) return pending;
  if (auto parsed = api::parse_preferred_node_terms(*terms)) pending.preferred = *std::move(parsed);
  return pending;
}

}  // namespace spillway::scheduling
