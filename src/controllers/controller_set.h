// The controllers of one process as one engine: they share a client, caches and an event recorder, start when the
// caches are filled, and run after every step. Thread: loop.
#pragma once

#include "base/rng.h"
#include "client/engine.h"
#include "controllers/endpoints/endpoint_controllers.h"
#include "controllers/lifecycle_report.h"
#include "controllers/nodes/cloud_check.h"
#include "controllers/nodes/node_ipam.h"
#include "controllers/nodes/node_lifecycle.h"
#include "controllers/nodes/pod_gc.h"
#include "controllers/recording/lifecycle_recorder.h"
#include "controllers/shared/act_gate.h"
#include "controllers/shared/lifecycle_metrics.h"
#include "controllers/shared/pods_by_node.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/storage_cache.h"
#include "controllers/storage/claim_users.h"
#include "controllers/storage/volume_binder.h"
#include "controllers/storage/volume_protection.h"
#include "controllers/taints/taint_eviction.h"
#include "controllers/workloads/batch_controllers.h"
#include "controllers/workloads/daemon_set.h"
#include "controllers/workloads/deployment.h"
#include "controllers/workloads/horizontal_autoscaler.h"
#include "controllers/workloads/replica_set.h"
#include "controllers/workloads/stateful_set.h"
#include "policy/addresses/node_ranges.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include "recording/sink.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace spillway::controllers {

class ControllerSet final : public client::ApiEngine {
 public:
  /// The enabled controllers; names are upstream's.
  struct Enabled {
    bool node_lifecycle = true;
    bool taint_eviction = true;
    bool pod_gc = true;
    bool replica_set = true;
    bool replication = true;
    bool daemon_set = true;
    bool deployment = true;
    BatchControllers::Enabled batch;
    bool volume_binder = true;
    bool volume_protection = true;
    bool stateful_set = true;
    bool horizontal_autoscaler = true;
    EndpointControllers::Enabled endpoints;
    bool node_ipam = true;
  };

  struct Options {
    Enabled enabled;
    NodeLifecycleController::Options node_lifecycle;
    TaintEvictionController::Options taint_eviction;
    PodGc::Options pod_gc;
    CloudCheck::Options cloud_check;
    lifecycle::BrakeConfig brakes;
    /// Keep the templates of DaemonSets as ControllerRevisions.
    bool daemon_history = true;
    /// Pods that are evicted from a node again and again are replaced later each time; upstream: at once.
    bool eviction_backoff = false;
    autoscaling::Settings autoscaling{};
    /// The ranges from which nodes get their blocks of pod addresses; without a cluster range they get none.
    addresses::NodeRanges node_ranges{};
    /// The rate of all writes together; nullopt: unlimited.
    std::optional<client::ApiClient::Rate> write_rate = std::nullopt;
    /// The sink for the recording of the node lifecycle; null: none. Must outlive the set.
    recording::Sink* recording = nullptr;
  };

  /// `metrics` must outlive the set.
  ControllerSet(Options options, Rng rng, telemetry::Log log, telemetry::Registry& metrics);
  ControllerSet(const ControllerSet&) = delete;
  ControllerSet& operator=(const ControllerSet&) = delete;

  std::string_view name() const override { return "controller"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

  bool synced() const { return client_.synced(); }

  const NodeLifecycleController& node_lifecycle() const { return node_lifecycle_controller_; }

  const ActGate& gate() const { return gate_; }

  CloudCheck& cloud_check() { return cloud_check_; }

  const LifecycleReport& report() const { return report_; }

  /// The back-off that a workload waits for before it replaces evicted pods. `resource`: "replicasets", "daemonsets" or
  /// "statefulsets"; `key`: NAMESPACE/NAME. nullopt: no workload of that name is in the cache, or its controller does
  /// not run.
  std::optional<policy::Decision> explain_evictions(std::string_view resource, const std::string& key, Now now) const;

  /// The number of finished passes over all nodes, and the number of nodes.
  std::uint64_t passes() const { return lifecycle_metrics_.passes(); }

  std::size_t nodes_known() const { return nodes_.cache().size(); }

  const TaintEvictionController& taint_eviction() const { return taint_eviction_controller_; }

 private:
  void run(Now now);
  void make_storage(Rng rng, telemetry::Registry& metrics);
  void make_replication(Rng rng, telemetry::Registry& metrics, EvictionHolds::Mode eviction_backoff);
  void make_deployments(Rng rng, telemetry::Registry& metrics);
  void make_stateful_sets(Rng rng, telemetry::Registry& metrics, EvictionHolds::Mode eviction_backoff);
  void make_node_ipam(Rng rng, addresses::NodeRanges ranges);
  void make_autoscalers(Rng rng, telemetry::Registry& metrics, autoscaling::Settings settings);
  Shared shared(client::EventRecorder& events);

  Enabled enabled_;
  telemetry::Log log_;
  client::ApiClient client_;
  client::Informer<api::Node> nodes_;
  client::Informer<api::Pod> pods_;
  client::Informer<api::Lease> leases_;
  client::Informer<api::ReplicaSet> replica_sets_;
  client::Informer<api::DaemonSet> daemon_sets_;
  std::unique_ptr<client::Informer<api::ControllerRevision>> revisions_;  // null: no controller reads them
  LifecycleMetrics lifecycle_metrics_;
  ActGate gate_;
  PodsByNode pods_by_node_;  // first, because it must receive changes before the controllers
  client::EventRecorder node_events_;
  client::EventRecorder taint_events_;
  client::EventRecorder replica_set_events_;
  client::EventRecorder daemon_set_events_;
  client::EventRecorder cloud_events_;
  std::unique_ptr<LifecycleRecorder> recorder_;  // null: nothing is recorded
  NodeLifecycleController node_lifecycle_controller_;
  TaintEvictionController taint_eviction_controller_;
  ReplicaSetController replica_set_controller_;
  DaemonSetController daemon_set_controller_;
  PodGc pod_gc_;
  CloudCheck cloud_check_;
  LifecycleReport report_;
  // Made only if that controller runs: no other part reads ReplicationControllers.
  std::optional<client::EventRecorder> replication_events_;
  std::optional<client::Informer<api::ReplicationController>> replication_controllers_;
  std::optional<ReplicationManager> replication_manager_;
  // Made only if that controller runs: no other part reads Deployments.
  std::optional<client::EventRecorder> deployment_events_;
  std::optional<client::Informer<api::Deployment>> deployments_;
  std::optional<DeploymentController> deployment_controller_;
  std::unique_ptr<BatchControllers> batch_;  // null: none of these controllers runs
  // Created only if one of these controllers runs: no other part reads claims and volumes.
  std::optional<client::EventRecorder> volume_events_;
  std::optional<StorageCache> storage_;
  std::optional<ClaimUsers> claim_users_;
  std::optional<VolumeBinder> volume_binder_;
  std::optional<VolumeProtection> volume_protection_;
  // Made only if that controller runs.
  std::optional<client::EventRecorder> stateful_set_events_;
  std::optional<client::Informer<api::StatefulSet>> stateful_sets_;
  std::optional<client::Informer<api::PersistentVolumeClaim>> claims_;  // without storage_
  std::optional<StatefulSetController> stateful_set_controller_;
  // Made only if that controller runs.
  std::optional<client::EventRecorder> autoscaler_events_;
  std::optional<client::Informer<api::HorizontalPodAutoscaler>> autoscalers_;
  std::optional<HorizontalAutoscalerController> autoscaler_controller_;
  std::unique_ptr<EndpointControllers> endpoint_controllers_;  // null: none of these controllers runs
  std::optional<client::EventRecorder> node_ipam_events_;
  std::optional<NodeIpam> node_ipam_;  // nullopt: the controller does not run, or there is no range
};

}  // namespace spillway::controllers
