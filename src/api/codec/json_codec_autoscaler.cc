#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/object/horizontal_autoscaler.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<ScaleTarget> auto& target) {
  v.kept("kind", target.kind);
  v.kept("name", target.name);
  v.field("apiVersion", target.api_version);
}

template <typename V>
void describe(V& v, Is<AutoscalerCondition> auto& condition) {
  v.kept("type", condition.type);
  v.kept("status", condition.status);
  v.field("lastTransitionTime", condition.last_transition_time);
  v.field("reason", condition.reason);
  v.field("message", condition.message);
}

template <typename V>
void describe(V& v, Is<AutoscalerStatus> auto& status) {
  v.field("lastScaleTime", status.last_scale_time);
  v.field("currentReplicas", status.current_replicas);
  v.kept("desiredReplicas", status.desired_replicas);
  v.field("currentMetrics", status.current_metrics);
  v.list("conditions", status.conditions, "type", &AutoscalerCondition::type);
}

template <typename V>
void describe(V& v, Is<HorizontalPodAutoscaler> auto& autoscaler) {
  v.type_meta(HorizontalPodAutoscaler::kApiVersion, HorizontalPodAutoscaler::kKind);
  v.object("metadata", autoscaler.metadata);
  v.nested("spec", [&](V& spec) {
    spec.object("scaleTargetRef", autoscaler.target);
    spec.field("minReplicas", autoscaler.min_replicas);
    spec.kept("maxReplicas", autoscaler.max_replicas);
    spec.field("metrics", autoscaler.metrics);
    spec.field("behavior", autoscaler.behavior);
  });
  v.object("status", autoscaler.status);
}

template struct Codec<HorizontalPodAutoscaler>;

}  // namespace spillway::api
