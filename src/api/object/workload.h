// apps/v1 Deployment, ReplicaSet, DaemonSet and StatefulSet, scheduling.k8s.io/v1 PriorityClass, v1 Namespace, as the
// controllers see them. Thread: any. Source: Kubernetes API reference, "Workload Resources".
#pragma once

#include "api/json/json.h"
#include "api/object/meta.h"
#include "api/object/selector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spillway::api {

/// spec.template, whole: a controller copies it into pods without understanding all of it.
struct PodTemplate {
  StringMap labels;
  StringMap annotations;
  Json metadata;  // the whole metadata: labels and annotations again, and other members
  Json spec;

  friend bool operator==(const PodTemplate&, const PodTemplate&) = default;
};

struct ReplicaSetStatus {
  std::int32_t replicas = 0;
  std::int32_t fully_labeled_replicas = 0;
  std::int32_t ready_replicas = 0;
  std::int32_t available_replicas = 0;
  std::int64_t observed_generation = 0;

  friend bool operator==(const ReplicaSetStatus&, const ReplicaSetStatus&) = default;
};

/// A condition of a ReplicaSet or Deployment; a ReplicaSet's has no time of its last update.
struct WorkloadCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::optional<WallTime> last_update_time;
  std::optional<WallTime> last_transition_time;

  friend bool operator==(const WorkloadCondition&, const WorkloadCondition&) = default;
};

struct ReplicaSet {
  static constexpr std::string_view kKind = "ReplicaSet";
  static constexpr std::string_view kApiVersion = "apps/v1";
  ObjectMeta metadata;
  std::int32_t replicas = 1;
  std::int32_t min_ready_seconds = 0;
  LabelSelector selector;
  PodTemplate pod_template;
  ReplicaSetStatus status;
  std::vector<WorkloadCondition> conditions;  // status.conditions

  friend bool operator==(const ReplicaSet&, const ReplicaSet&) = default;
};

struct DeploymentStatus {
  std::int64_t observed_generation = 0;
  std::int32_t replicas = 0;
  std::int32_t updated_replicas = 0;
  std::int32_t ready_replicas = 0;
  std::int32_t available_replicas = 0;
  std::int32_t unavailable_replicas = 0;
  std::optional<std::int32_t> collision_count;
  std::vector<WorkloadCondition> conditions;

  friend bool operator==(const DeploymentStatus&, const DeploymentStatus&) = default;
};

struct Deployment {
  static constexpr std::string_view kKind = "Deployment";
  static constexpr std::string_view kApiVersion = "apps/v1";
  ObjectMeta metadata;
  std::int32_t replicas = 1;
  bool paused = false;
  std::int32_t min_ready_seconds = 0;
  std::optional<std::int32_t> revision_history_limit;
  std::optional<std::int32_t> progress_deadline_seconds;
  std::string strategy;  // RollingUpdate, Recreate
  Json max_surge;        // for a rolling update: a number of pods, or a text like "25%"; null: not given
  Json max_unavailable;  // for a rolling update; null: not given
  LabelSelector selector;
  Json selector_document;  // the selector as it is written
  PodTemplate pod_template;
  DeploymentStatus status;

  friend bool operator==(const Deployment&, const Deployment&) = default;
};

struct DaemonSetStatus {
  std::int32_t current_number_scheduled = 0;
  std::int32_t number_misscheduled = 0;
  std::int32_t desired_number_scheduled = 0;
  std::int32_t number_ready = 0;
  std::int32_t updated_number_scheduled = 0;
  std::int32_t number_available = 0;
  std::int32_t number_unavailable = 0;
  std::int64_t observed_generation = 0;
  std::optional<std::int32_t> collision_count;

  friend bool operator==(const DaemonSetStatus&, const DaemonSetStatus&) = default;
};

struct DaemonSet {
  static constexpr std::string_view kKind = "DaemonSet";
  static constexpr std::string_view kApiVersion = "apps/v1";
  ObjectMeta metadata;
  LabelSelector selector;
  PodTemplate pod_template;
  std::int32_t min_ready_seconds = 0;
  std::optional<std::int32_t> revision_history_limit;
  std::string update_strategy;  // RollingUpdate, OnDelete
  Json max_unavailable;         // for a rolling update: a number of pods, or a text like "40%"; null: not given
  Json max_surge;               // for a rolling update; null: not given
  DaemonSetStatus status;

  friend bool operator==(const DaemonSet&, const DaemonSet&) = default;
};

struct StatefulSetStatus {
  std::int64_t observed_generation = 0;
  std::int32_t replicas = 0;
  std::int32_t ready_replicas = 0;
  std::int32_t current_replicas = 0;
  std::int32_t updated_replicas = 0;
  std::string current_revision;
  std::string update_revision;
  std::optional<std::int32_t> collision_count;
  std::int32_t available_replicas = 0;

  friend bool operator==(const StatefulSetStatus&, const StatefulSetStatus&) = default;
};

struct StatefulSet {
  static constexpr std::string_view kKind = "StatefulSet";
  static constexpr std::string_view kApiVersion = "apps/v1";
  ObjectMeta metadata;
  std::int32_t replicas = 1;
  LabelSelector selector;
  StringMap selector_labels;  // the selector's matchLabels, which new claims get
  PodTemplate pod_template;
  Json claim_templates;  // the list as it is written; null: none
  std::string service_name;
  std::string pod_management_policy;  // OrderedReady, Parallel
  std::string update_strategy;        // RollingUpdate, OnDelete
  Json rolling_update;                // null: not given
  std::int32_t partition = 0;         // for a rolling update: ordinals below it keep the old revision
  std::optional<std::int32_t> revision_history_limit;
  std::int32_t min_ready_seconds = 0;
  std::string claims_when_deleted;  // Retain, Delete; empty: Retain
  std::string claims_when_scaled;   // Retain, Delete; empty: Retain
  std::int32_t first_ordinal = 0;
  StatefulSetStatus status;

  friend bool operator==(const StatefulSet&, const StatefulSet&) = default;
};

struct PriorityClass {
  static constexpr std::string_view kKind = "PriorityClass";
  static constexpr std::string_view kApiVersion = "scheduling.k8s.io/v1";
  ObjectMeta metadata;
  std::int32_t value = 0;
  bool global_default = false;
  std::string preemption_policy;

  friend bool operator==(const PriorityClass&, const PriorityClass&) = default;
};

struct Namespace {
  static constexpr std::string_view kKind = "Namespace";
  static constexpr std::string_view kApiVersion = "v1";
  ObjectMeta metadata;
  std::vector<std::string> spec_finalizers;
  std::string phase;

  friend bool operator==(const Namespace&, const Namespace&) = default;
};

}  // namespace spillway::api
