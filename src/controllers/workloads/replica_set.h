// Keeps as many pods of each ReplicaSet, or of each ReplicationController, as it specifies: creates in growing batches,
// deletes the least useful first, adopts matching orphans, releases pods that no longer match, writes the status; the
// condition ReplicaFailure has the error of failed creations. "Set" means either. Thread: loop. Bounds: 500 creations
// or deletions per pass; retries back off to 60 s. Source: Kubernetes docs, "ReplicaSet", "ReplicationController"; API
// reference ReplicaSetStatus.
#pragma once

#include "api/object/replication_controller.h"
#include "api/object/workload.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/eviction_holds.h"
#include "controllers/workloads/expectations.h"
#include "controllers/workloads/replica_count.h"
#include "telemetry/metrics.h"

#include <map>
#include <string>
#include <vector>

namespace spillway::controllers {

/// T: api::ReplicaSet, api::ReplicationController.
template <typename T>
class ReplicasController {
 public:
  /// `sets` must outlive the controller.
  ReplicasController(Shared shared, client::ObjectCache<T>& sets, telemetry::Registry& metrics,
                     EvictionHolds::Mode eviction_backoff = EvictionHolds::Mode::kOff,
                     ReplacedPods replaced = ReplacedPods::kCounted);
  ReplicasController(const ReplicasController&) = delete;
  ReplicasController& operator=(const ReplicasController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the sets that are due; called at the end of every step.
  void run(Now now);

  const OwnedPods& pods() const { return pods_; }

  const EvictionHolds& eviction_holds() const { return holds_; }

 private:
  using SetPtr = std::shared_ptr<const T>;

  static constexpr std::size_t kBurstMax = 500;
  static constexpr Duration kPacePerPod = microseconds(20);

  void on_set(const SetPtr& before, const SetPtr& after, Now now);
  static bool concerns(const PodPtr& pod);
  bool counts(const api::Pod& pod) const;
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void wake_takers(const api::Pod& orphan, Now now);
  void enqueue(const std::string& key, Now now);
  void enqueue_paced(const std::string& key, Now now);
  void arm(Now now);
  void sync(const std::string& key, Now now);
  std::vector<PodPtr> claim(const T& set);
  void scale(const SetPtr& set, const std::string& key, const std::vector<PodPtr>& active, Now now);
  struct Growth;
  void create_batch(const std::shared_ptr<Growth>& growth);
  void on_answer(const std::shared_ptr<Growth>& growth, const Result<api::Json>& outcome, Now now);
  void end_growth(const Growth& growth, Now now);
  bool still_wants(const Growth& growth) const;
  void remove(const T& set, const std::string& key, const std::vector<PodPtr>& active, std::size_t surplus);
  void on_removed(const api::ObjectReference& set, const std::string& key, const api::Pod& pod,
                  const Result<api::Json>& outcome, Now now);
  ReplicaCount& count_of(const T& set);
  /// `counted`: the active pods.
  void write_status(const T& set, const std::string& key, const api::ReplicaSetStatus& counted, Now now);
  void on_status_written(const std::string& key, const Result<api::Json>& outcome, Now now);
  std::int32_t count_available(const T& set, const std::string& key, Now now);

  Shared shared_;
  client::ObjectCache<T>& sets_;
  OwnedPods pods_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  ExpectationTable expectations_{shared_.pods};
  EvictionHolds holds_;
  ReplacedPods replaced_;
  std::map<std::string, ReplicaCount> counts_;  // by uid of the set
  std::map<std::string, std::string> key_by_uid_;
  std::map<std::string, std::string> refusals_;  // by uid of the set: why the last pods were not made
  std::map<std::string, Instant> paced_until_;   // by key: changes of pods wait until then
  client::WakeUp wake_up_;
  bool started_ = false;
};

using ReplicaSetController = ReplicasController<api::ReplicaSet>;
using ReplicationManager = ReplicasController<api::ReplicationController>;

}  // namespace spillway::controllers
