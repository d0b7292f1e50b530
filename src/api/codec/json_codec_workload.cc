#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<PodTemplate> auto& pod_template) {
  v.nested("metadata", [&](V& metadata) {
    metadata.field("labels", pod_template.labels);
    metadata.field("annotations", pod_template.annotations);
  });
  v.field("spec", pod_template.spec);
}

template <typename V>
void describe(V& v, Is<ReplicaSetStatus> auto& status) {
  v.kept("replicas", status.replicas);
  v.field("fullyLabeledReplicas", status.fully_labeled_replicas);
  v.field("readyReplicas", status.ready_replicas);
  v.field("availableReplicas", status.available_replicas);
  v.field("observedGeneration", status.observed_generation);
}

template <typename V>
void describe(V& v, Is<ReplicaSet> auto& set) {
  v.type_meta(ReplicaSet::kApiVersion, ReplicaSet::kKind);
  v.object("metadata", set.metadata);
  v.nested("spec", [&](V& spec) {
    spec.kept("replicas", set.replicas);
    spec.selector("selector", set.selector);
    spec.object("template", set.pod_template);
  });
  v.object("status", set.status);
}

template <typename V>
void describe(V& v, Is<DaemonSetStatus> auto& status) {
  v.kept("currentNumberScheduled", status.current_number_scheduled);
  v.kept("numberMisscheduled", status.number_misscheduled);
  v.kept("desiredNumberScheduled", status.desired_number_scheduled);
  v.kept("numberReady", status.number_ready);
  v.field("updatedNumberScheduled", status.updated_number_scheduled);
  v.field("numberAvailable", status.number_available);
  v.field("numberUnavailable", status.number_unavailable);
  v.field("observedGeneration", status.observed_generation);
}

template <typename V>
void describe(V& v, Is<DaemonSet> auto& set) {
  v.type_meta(DaemonSet::kApiVersion, DaemonSet::kKind);
  v.object("metadata", set.metadata);
  v.nested("spec", [&](V& spec) {
    spec.selector("selector", set.selector);
    spec.object("template", set.pod_template);
    spec.nested("updateStrategy", [&](V& strategy) {
      strategy.field("type", set.update_strategy);
      strategy.nested("rollingUpdate", [&](V& rolling) { rolling.field("maxUnavailable", set.max_unavailable); });
    });
  });
  v.object("status", set.status);
}

template <typename V>
void describe(V& v, Is<PriorityClass> auto& priority) {
  v.type_meta(PriorityClass::kApiVersion, PriorityClass::kKind);
  v.object("metadata", priority.metadata);
  v.kept("value", priority.value);
  v.field("globalDefault", priority.global_default);
  v.field("preemptionPolicy", priority.preemption_policy);
}

template <typename V>
void describe(V& v, Is<Namespace> auto& ns) {
  v.type_meta(Namespace::kApiVersion, Namespace::kKind);
  v.object("metadata", ns.metadata);
  v.nested("spec", [&](V& spec) { spec.field("finalizers", ns.spec_finalizers); });
  v.nested("status", [&](V& status) { status.field("phase", ns.phase); });
}

template struct Codec<ReplicaSet>;
template struct Codec<DaemonSet>;
template struct Codec<PriorityClass>;
template struct Codec<Namespace>;

}  // namespace spillway::api
