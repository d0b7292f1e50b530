// Runs one pod of each DaemonSet on every node that it selects. The pods are bound by the scheduler: each names its
// node in its affinity. Their tolerations let them stay on nodes that are not ready, unreachable, cordoned or under
// pressure. Pods of an earlier template are replaced a few at a time (policy/workloads), unless the strategy is
// OnDelete. Each sync is planned by policy/workloads/daemon_plan.h. Thread: loop. Source: Kubernetes docs, "DaemonSet",
// taints and tolerations; API reference DaemonSetStatus.
#pragma once

#include "api/object/node_affinity.h"
#include "api/object/workload.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/eviction_holds.h"
#include "controllers/workloads/expectations.h"
#include "controllers/workloads/revision_keeper.h"
#include "policy/workloads/failure_backoff.h"
#include "telemetry/metrics.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spillway::controllers {

/// The tolerations every daemon pod gets, added to those of the template. Pure.
std::vector<api::Toleration> daemon_tolerations(const api::PodSpec& spec);

/// The pod for one node: template, tolerations, affinity to the node's name, the label of the template's hash unless
/// that is empty. Pure.
api::Json daemon_pod(const api::DaemonSet& set, const std::string& node, const std::string& hash);

class DaemonSetController {
 public:
  /// `revisions`: where the templates are kept as ControllerRevisions; null: they are not.
  DaemonSetController(Shared shared, telemetry::Registry& metrics,
                      client::ObjectCache<api::ControllerRevision>* revisions,
                      EvictionHolds::Mode eviction_backoff = EvictionHolds::Mode::kOff);
  DaemonSetController(const DaemonSetController&) = delete;
  DaemonSetController& operator=(const DaemonSetController&) = delete;

  void start(Now now);
  /// Syncs the DaemonSets that are due; called at the end of every step.
  void run(Now now);

  const EvictionHolds& eviction_holds() const { return holds_; }

 private:
  using SetPtr = std::shared_ptr<const api::DaemonSet>;

  void on_set(const SetPtr& before, const SetPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void on_node(const std::shared_ptr<const api::Node>& before, const std::shared_ptr<const api::Node>& after, Now now);
  void enqueue(const std::string& key, Now now);
  void enqueue_all(Now now);
  void arm();
  void sync(const std::string& key, Now now);
  void create(const SetPtr& set, const std::string& key, const std::string& node, const std::string& hash);
  void on_created(const SetPtr& set, const std::string& key, const Result<api::Json>& outcome, Now now);
  void remove(const SetPtr& set, const std::string& key, const PodPtr& pod);
  void on_removed(const api::DaemonSet& set, const std::string& key, const api::Pod& pod,
                  const Result<api::Json>& outcome, Now now);
  void write_status(const api::DaemonSet& set, const std::string& key, const api::DaemonSetStatus& status);
  void on_status_written(const std::string& key, const Result<api::Json>& outcome, Now now);
  ExpectationTable::Requeue requeue(const std::string& key);

  Shared shared_;
  OwnedPods pods_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  ExpectationTable expectations_{shared_.pods};
  std::map<std::string, std::string> key_by_uid_;
  EvictionHolds holds_;

  /// The back-off of one generation of a set: failures of another template do not count for it.
  struct GenerationBackoff {
    std::int64_t generation = 0;
    workloads::FailureBackoff nodes;
  };

  std::map<std::string, GenerationBackoff> backoff_;  // by the uid of the set
  std::optional<RevisionKeeper> revisions_;           // nullopt: this controller keeps no history
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
