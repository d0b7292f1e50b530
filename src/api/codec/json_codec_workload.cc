#include "api/codec/codec.h"
#include "api/codec/json_codec_instances.h"
#include "api/codec/json_codec_meta.h"
#include "api/codec/json_codec_template.h"
#include "api/object/replication_controller.h"

namespace spillway::api {

template <typename V>
void describe(V& v, Is<ReplicaSetStatus> auto& status) {
  v.kept("replicas", status.replicas);
  v.field("fullyLabeledReplicas", status.fully_labeled_replicas);
  v.field("readyReplicas", status.ready_replicas);
  v.field("availableReplicas", status.available_replicas);
  v.field("observedGeneration", status.observed_generation);
}

template <typename V>
void describe(V& v, Is<WorkloadCondition> auto& condition) {
  v.kept("type", condition.type);
  v.field("status", condition.status);
  v.field("lastUpdateTime", condition.last_update_time);
  v.field("lastTransitionTime", condition.last_transition_time);
  v.field("reason", condition.reason);
  v.field("message", condition.message);
}

template <typename V>
void describe(V& v, Is<ReplicaSet> auto& set) {
  v.type_meta(ReplicaSet::kApiVersion, ReplicaSet::kKind);
  v.object("metadata", set.metadata);
  v.nested("spec", [&](V& spec) {
    spec.kept("replicas", set.replicas);
    spec.field("minReadySeconds", set.min_ready_seconds);
    spec.selector("selector", set.selector);
    spec.object("template", set.pod_template);
  });
  v.object("status", set.status);
  v.nested("status", [&](V& status) { status.list("conditions", set.conditions, "type", &WorkloadCondition::type); });
}

LabelSelector equal_to(const StringMap& labels) {
  LabelSelector selector{.requirements = {}, .nothing = labels.empty()};
  for (const auto& [key, value] : labels) selector.add({key, LabelRequirement::Op::kIn, {value}});
  return selector;
}

template <typename V>
void describe(V& v, Is<ReplicationController> auto& controller) {
  v.type_meta(ReplicationController::kApiVersion, ReplicationController::kKind);
  v.object("metadata", controller.metadata);
  v.nested("spec", [&](V& spec) {
    spec.kept("replicas", controller.replicas);
    spec.field("minReadySeconds", controller.min_ready_seconds);
    spec.field("selector", controller.selected_labels);
    spec.object("template", controller.pod_template);
  });
  v.object("status", controller.status);
  v.nested("status",
           [&](V& status) { status.list("conditions", controller.conditions, "type", &WorkloadCondition::type); });
  if constexpr (V::kReads) controller.selector = equal_to(controller.selected_labels);
}

template <typename V>
void describe(V& v, Is<DeploymentStatus> auto& status) {
  v.field("observedGeneration", status.observed_generation);
  v.field("replicas", status.replicas);
  v.field("updatedReplicas", status.updated_replicas);
  v.field("readyReplicas", status.ready_replicas);
  v.field("availableReplicas", status.available_replicas);
  v.field("unavailableReplicas", status.unavailable_replicas);
  v.field("collisionCount", status.collision_count);
  v.list("conditions", status.conditions, "type", &WorkloadCondition::type);
}

template <typename V>
void describe(V& v, Is<Deployment> auto& deployment) {
  v.type_meta(Deployment::kApiVersion, Deployment::kKind);
  v.object("metadata", deployment.metadata);
  v.nested("spec", [&](V& spec) {
    spec.kept("replicas", deployment.replicas);
    spec.field("paused", deployment.paused);
    spec.field("minReadySeconds", deployment.min_ready_seconds);
    spec.field("revisionHistoryLimit", deployment.revision_history_limit);
    spec.field("progressDeadlineSeconds", deployment.progress_deadline_seconds);
    spec.nested("strategy", [&](V& strategy) {
      strategy.field("type", deployment.strategy);
      strategy.nested("rollingUpdate", [&](V& rolling) {
        rolling.field("maxSurge", deployment.max_surge);
        rolling.field("maxUnavailable", deployment.max_unavailable);
      });
    });
    spec.field("selector", deployment.selector_document);
    spec.selector("selector", deployment.selector);
    spec.object("template", deployment.pod_template);
  });
  v.object("status", deployment.status);
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
  v.field("collisionCount", status.collision_count);
}

template <typename V>
void describe(V& v, Is<DaemonSet> auto& set) {
  v.type_meta(DaemonSet::kApiVersion, DaemonSet::kKind);
  v.object("metadata", set.metadata);
  v.nested("spec", [&](V& spec) {
    spec.selector("selector", set.selector);
    spec.object("template", set.pod_template);
    spec.field("minReadySeconds", set.min_ready_seconds);
    spec.field("revisionHistoryLimit", set.revision_history_limit);
    spec.nested("updateStrategy", [&](V& strategy) {
      strategy.field("type", set.update_strategy);
      strategy.nested("rollingUpdate", [&](V& rolling) {
        rolling.field("maxUnavailable", set.max_unavailable);
        rolling.field("maxSurge", set.max_surge);
      });
    });
  });
  v.object("status", set.status);
}

template <typename V>
void describe(V& v, Is<StatefulSetStatus> auto& status) {
  v.field("observedGeneration", status.observed_generation);
  v.kept("replicas", status.replicas);
  v.field("readyReplicas", status.ready_replicas);
  v.field("currentReplicas", status.current_replicas);
  v.field("updatedReplicas", status.updated_replicas);
  v.field("currentRevision", status.current_revision);
  v.field("updateRevision", status.update_revision);
  v.field("collisionCount", status.collision_count);
  v.kept("availableReplicas", status.available_replicas);
}

template <typename V>
void describe(V& v, Is<StatefulSet> auto& set) {
  v.type_meta(StatefulSet::kApiVersion, StatefulSet::kKind);
  v.object("metadata", set.metadata);
  v.nested("spec", [&](V& spec) {
    spec.kept("replicas", set.replicas);
    spec.selector("selector", set.selector);
    spec.nested("selector", [&](V& selector) { selector.field("matchLabels", set.selector_labels); });
    spec.object("template", set.pod_template);
    spec.field("volumeClaimTemplates", set.claim_templates);
    spec.field("serviceName", set.service_name);
    spec.field("podManagementPolicy", set.pod_management_policy);
    spec.nested("updateStrategy", [&](V& strategy) {
      strategy.field("type", set.update_strategy);
      strategy.field("rollingUpdate", set.rolling_update);
      strategy.nested("rollingUpdate", [&](V& rolling) { rolling.field("partition", set.partition); });
    });
    spec.field("revisionHistoryLimit", set.revision_history_limit);
    spec.field("minReadySeconds", set.min_ready_seconds);
    spec.nested("persistentVolumeClaimRetentionPolicy", [&](V& retention) {
      retention.field("whenDeleted", set.claims_when_deleted);
      retention.field("whenScaled", set.claims_when_scaled);
    });
    spec.nested("ordinals", [&](V& ordinals) { ordinals.field("start", set.first_ordinal); });
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

template struct Codec<Deployment>;
template struct Codec<ReplicaSet>;
template struct Codec<ReplicationController>;
template struct Codec<DaemonSet>;
template struct Codec<StatefulSet>;
template struct Codec<PriorityClass>;
template struct Codec<Namespace>;

}  // namespace spillway::api
