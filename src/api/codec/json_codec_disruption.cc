#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/disruption_budget.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<PodDisruptionBudgetStatus> auto& status) {
  v.kept("expectedPods", status.expected_pods);
  v.kept("currentHealthy", status.current_healthy);
  v.kept("desiredHealthy", status.desired_healthy);
  v.kept("disruptionsAllowed", status.disruptions_allowed);
  v.field("observedGeneration", status.observed_generation);
  v.field("disruptedPods", status.disrupted_pods);
}

template <typename V>
void describe(V& v, Is<PodDisruptionBudget> auto& budget) {
  v.type_meta(PodDisruptionBudget::kApiVersion, PodDisruptionBudget::kKind);
  v.object("metadata", budget.metadata);
  v.nested("spec", [&](V& spec) {
    spec.field("minAvailable", budget.min_available);
    spec.field("maxUnavailable", budget.max_unavailable);
    spec.selector("selector", budget.selector);
    spec.field("unhealthyPodEvictionPolicy", budget.unhealthy_pod_eviction_policy);
  });
  v.object("status", budget.status);
}

template struct Codec<PodDisruptionBudget>;

}  // namespace spillway::api
