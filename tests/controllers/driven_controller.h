// The product's node lifecycle controller, and its check of clouds, as one engine behind ports that a model of a
// cluster holds: the calls of its client, the pods of a node, what the cloud says. Nothing is decided here.
#pragma once

#include "client/engine.h"
#include "controllers/nodes/cloud_check.h"
#include "controllers/nodes/node_lifecycle.h"
#include "controllers/shared/pods_by_node.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

class DrivenController final : public client::ApiEngine {
 public:
  struct Options {
    NodeLifecycleController::Options lifecycle;
    CloudCheck::Options cloud;
    std::function<bool(const std::string& node)> pods_can_be_listed;
  };

  explicit DrivenController(Options options);

  std::string_view name() const override { return "node-lifecycle-controller"; }

  void start(Now now) override;
  void on_api_event(const client::ApiEvent& event, Now now) override;
  void on_wakeup(Now now) override;

  std::optional<Instant> next_wakeup() const override { return client_.next_wakeup(); }

  std::vector<client::ApiCommand> take_api_commands() override { return client_.take_api_commands(); }

  const lifecycle::NodeMonitor& monitor() const { return lifecycle_.monitor(); }

  CloudCheck& cloud() { return cloud_; }

  /// Pod deletions and evictions of nodes that have been counted so far.
  const telemetry::Registry& metrics() const { return registry_; }

 private:
  telemetry::Log log_;
  telemetry::Registry registry_;
  client::ApiClient client_;
  client::Informer<api::Node> nodes_;
  client::Informer<api::Pod> pods_;
  client::Informer<api::Lease> leases_;
  client::Informer<api::ReplicaSet> replica_sets_;
  client::Informer<api::DaemonSet> daemon_sets_;
  client::EventRecorder events_;
  LifecycleMetrics metrics_;
  ActGate gate_;
  PodsByNode pods_by_node_;
  NodeLifecycleController lifecycle_;
  CloudCheck cloud_;
};

}  // namespace spillway::controllers
