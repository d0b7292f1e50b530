#include "controllers/controller_set.h"

#include "controllers/node_responses.h"

#include <utility>

namespace spillway::controllers {
namespace {

std::unique_ptr<LifecycleRecorder> recorder_of(const ControllerSet::Options& options) {
  if (options.recording == nullptr) return nullptr;
  const NodeLifecycleController::Options& nodes = options.node_lifecycle;
  return std::make_unique<LifecycleRecorder>(
      *options.recording, recorded_controller(nodes.profile, nodes.node_monitor_period, nodes.monitor, options.brakes));
}

std::unique_ptr<client::Informer<api::ControllerRevision>> revisions_for(const ControllerSet::Options& options,
                                                                         client::ApiClient& client) {
  const bool of_daemons = options.enabled.daemon_set && options.daemon_history;
  if (!of_daemons && !options.enabled.stateful_set) return nullptr;
  return std::make_unique<client::Informer<api::ControllerRevision>>(
      client, client::object_path(api::ControllerRevision::kApiVersion, "controllerrevisions", {}));
}

EvictionHolds::Mode eviction_mode(const ControllerSet::Options& options) {
  return options.eviction_backoff ? EvictionHolds::Mode::kOn : EvictionHolds::Mode::kOff;
}

ReplacedPods replaced_pods(const ControllerSet::Options& options) {
  return options.taint_eviction.replace_before_deletion ? ReplacedPods::kLeftOut : ReplacedPods::kCounted;
}

NodeLifecycleController::Options watched(NodeLifecycleController::Options options, LifecycleRecorder* recorder) {
  if (recorder != nullptr) options.witness = recorder;
  return options;
}

}  // namespace

ControllerSet::ControllerSet(Options options, Rng rng, telemetry::Log log, telemetry::Registry& metrics)
    : enabled_(options.enabled),
      log_(std::move(log)),
      client_("spillway-controller", rng.fork("client"), {.write_rate = options.write_rate}),
      nodes_(client_, client::object_path("v1", "nodes", {})),
      pods_(client_, client::object_path("v1", "pods", {})),
      leases_(client_, client::object_path("coordination.k8s.io/v1", "leases", "kube-node-lease")),
      replica_sets_(client_, client::object_path("apps/v1", "replicasets", {})),
      daemon_sets_(client_, client::object_path("apps/v1", "daemonsets", {})),
      revisions_(revisions_for(options, client_)),
      lifecycle_metrics_(metrics),
      gate_(options.brakes, log_, metrics),
      pods_by_node_(pods_.cache()),
      node_events_(client_, rng.fork("node events"),
                   std::string(options.node_lifecycle.profile.facts.node_events_from)),
      taint_events_(client_, rng.fork("taint events"),
                    std::string(options.taint_eviction.profile.facts.taint_events_from)),
      replica_set_events_(client_, rng.fork("replica set events"), "replicaset-controller"),
      daemon_set_events_(client_, rng.fork("daemon set events"), "daemonset-controller"),
      cloud_events_(client_, rng.fork("cloud events"), "cloud-node-lifecycle-controller"),
      recorder_(recorder_of(options)),
      node_lifecycle_controller_(
          shared(node_events_), [this](const std::string& node) { return std::optional(pods_by_node_.on(node)); },
          lifecycle_metrics_, gate_, rng.fork("node lifecycle"), watched(options.node_lifecycle, recorder_.get()),
          make_node_response),
      taint_eviction_controller_(shared(taint_events_), pods_by_node_, lifecycle_metrics_, gate_, metrics,
                                 options.taint_eviction),
      replica_set_controller_(shared(replica_set_events_), replica_sets_.cache(), metrics, eviction_mode(options),
                              replaced_pods(options)),
      daemon_set_controller_(shared(daemon_set_events_), metrics,
                             enabled_.daemon_set && options.daemon_history ? &revisions_->cache() : nullptr,
                             eviction_mode(options)),
      pod_gc_(shared(node_events_), metrics, options.pod_gc),
      cloud_check_(shared(cloud_events_), gate_, rng.fork("cloud"), options.cloud_check),
      report_(shared(node_events_), node_lifecycle_controller_, taint_eviction_controller_, pods_by_node_, gate_) {
  if (enabled_.deployment) make_deployments(rng.fork("deployment events"), metrics);
  if (enabled_.batch.any()) {
    batch_ = std::make_unique<BatchControllers>(enabled_.batch, shared(node_events_), rng, metrics);
  }
  if (enabled_.volume_binder || enabled_.volume_protection) make_storage(rng.fork("volume events"), metrics);
  if (enabled_.stateful_set) make_stateful_sets(rng.fork("stateful set events"), metrics, eviction_mode(options));
  if (enabled_.horizontal_autoscaler) make_autoscalers(rng.fork("autoscaler events"), metrics, options.autoscaling);
  if (enabled_.endpoints.any()) {
    endpoint_controllers_ =
        std::make_unique<EndpointControllers>(enabled_.endpoints, shared(node_events_), rng, metrics);
  }
  if (enabled_.node_ipam && !options.node_ranges.clusters.empty()) {
    make_node_ipam(rng.fork("node ipam events"), std::move(options.node_ranges));
  }
  if (enabled_.replication) make_replication(rng.fork("replication events"), metrics, eviction_mode(options));
}

void ControllerSet::make_replication(Rng rng, telemetry::Registry& metrics, EvictionHolds::Mode eviction_backoff) {
  replication_events_.emplace(client_, rng, "replication-controller");
  replication_controllers_.emplace(
      client_, client::object_path(api::ReplicationController::kApiVersion, "replicationcontrollers", {}));
  replication_manager_.emplace(shared(*replication_events_), replication_controllers_->cache(), metrics,
                               eviction_backoff);
}

void ControllerSet::make_deployments(Rng rng, telemetry::Registry& metrics) {
  deployment_events_.emplace(client_, rng, "deployment-controller");
  deployments_.emplace(client_, client::object_path("apps/v1", "deployments", {}));
  deployment_controller_.emplace(shared(*deployment_events_), *deployments_, replica_set_controller_.pods(), metrics);
}

void ControllerSet::make_storage(Rng rng, telemetry::Registry& metrics) {
  volume_events_.emplace(client_, rng, "persistentvolume-controller");
  storage_.emplace(client_);
  claim_users_.emplace(pods_.cache());
  if (enabled_.volume_binder) {
    volume_binder_.emplace(VolumeBinder::Parts{client_, *volume_events_, log_, *storage_, *claim_users_}, metrics);
  }
  if (enabled_.volume_protection) {
    volume_protection_.emplace(VolumeProtection::Parts{client_, log_, *storage_, *claim_users_});
  }
}

void ControllerSet::make_stateful_sets(Rng rng, telemetry::Registry& metrics, EvictionHolds::Mode eviction_backoff) {
  stateful_set_events_.emplace(client_, rng, "statefulset-controller");
  stateful_sets_.emplace(client_, client::object_path(api::StatefulSet::kApiVersion, "statefulsets", {}));
  if (!storage_) claims_.emplace(client_, client::object_path("v1", "persistentvolumeclaims", {}));
  client::ObjectCache<api::PersistentVolumeClaim>& claims = storage_ ? storage_->claims() : claims_->cache();
  stateful_set_controller_.emplace(shared(*stateful_set_events_),
                                   StatefulSetController::Caches{stateful_sets_->cache(), claims, revisions_->cache()},
                                   metrics, eviction_backoff);
}

void ControllerSet::make_node_ipam(Rng rng, addresses::NodeRanges ranges) {
  node_ipam_events_.emplace(client_, rng, "cidrAllocator");
  node_ipam_.emplace(shared(*node_ipam_events_), std::move(ranges));
}

void ControllerSet::make_autoscalers(Rng rng, telemetry::Registry& metrics, autoscaling::Settings settings) {
  autoscaler_events_.emplace(client_, rng, "horizontal-pod-autoscaler");
  autoscalers_.emplace(client_,
                       client::object_path(api::HorizontalPodAutoscaler::kApiVersion, "horizontalpodautoscalers", {}));
  autoscaler_controller_.emplace(shared(*autoscaler_events_), *autoscalers_, metrics, settings);
}

std::optional<policy::Decision> ControllerSet::explain_evictions(std::string_view resource, const std::string& key,
                                                                 Now now) const {
  const auto explain = [&](const auto& set, const EvictionHolds& holds,
                           std::string_view by) -> std::optional<policy::Decision> {
    if (!set) return std::nullopt;
    const api::ObjectReference about = client::reference_to(*set);
    return holds.explain({about.kind, about.ns, about.name, about.uid}, by, now);
  };
  if (resource == "replicasets" && enabled_.replica_set) {
    return explain(replica_sets_.cache().find(key), replica_set_controller_.eviction_holds(), "replicaset-controller");
  }
  if (resource == "daemonsets" && enabled_.daemon_set) {
    return explain(daemon_sets_.cache().find(key), daemon_set_controller_.eviction_holds(), "daemonset-controller");
  }
  if (resource == "statefulsets" && stateful_set_controller_) {
    return explain(stateful_sets_->cache().find(key), stateful_set_controller_->eviction_holds(),
                   "statefulset-controller");
  }
  return std::nullopt;
}

Shared ControllerSet::shared(client::EventRecorder& events) {
  return {client_, events, log_, nodes_, pods_, leases_, replica_sets_, daemon_sets_};
}

void ControllerSet::start(Now now) {
  client_.start(now);
  client_.when_synced([this](Now then) {
    log_.info("caches are filled", {{"nodes", nodes_.cache().size()}, {"pods", pods_.cache().size()}});
    if (enabled_.node_lifecycle) node_lifecycle_controller_.start(then);
    if (enabled_.taint_eviction) taint_eviction_controller_.start(then);
    if (enabled_.replica_set) replica_set_controller_.start(then);
    if (replication_manager_) replication_manager_->start(then);
    if (enabled_.daemon_set) daemon_set_controller_.start(then);
    if (deployment_controller_) deployment_controller_->start(then);
    if (batch_) batch_->start(then);
    if (enabled_.pod_gc) pod_gc_.start(then);
    if (stateful_set_controller_) stateful_set_controller_->start(then);
    if (autoscaler_controller_) autoscaler_controller_->start(then);
    if (endpoint_controllers_) endpoint_controllers_->start(then);
    if (volume_binder_) volume_binder_->start(then);
    if (volume_protection_) volume_protection_->start(then);
    if (node_ipam_) node_ipam_->start(then);
    cloud_check_.start(then);
  });
}

void ControllerSet::on_api_event(const client::ApiEvent& event, Now now) {
  client_.on_api_event(event, now);
  run(now);
}

void ControllerSet::on_wakeup(Now now) {
  client_.on_wakeup(now);
  run(now);
}

void ControllerSet::run(Now now) {
  if (deployment_controller_) deployment_controller_->run(now);
  if (enabled_.replica_set) replica_set_controller_.run(now);
  if (replication_manager_) replication_manager_->run(now);
  if (enabled_.daemon_set) daemon_set_controller_.run(now);
  if (batch_) batch_->run(now);
  if (stateful_set_controller_) stateful_set_controller_->run(now);
  if (autoscaler_controller_) autoscaler_controller_->run(now);
  if (endpoint_controllers_) endpoint_controllers_->run(now);
  if (volume_binder_) volume_binder_->run(now);
  if (volume_protection_) volume_protection_->run(now);
  if (node_ipam_) node_ipam_->run(now);
  cloud_check_.run(now);
}

}  // namespace spillway::controllers
