// Keeps the pods of StatefulSets: each has its ordinal, its name and its claims, and they are created, changed and
// deleted in their order. This class decides when a set is synced, and adopts and releases its pods; one sync is
// stateful_set_sync.h. While the cache does not show a pod that was created or deleted, its set is not synced.
// Thread: loop. Bounds: one sync of a set at a time; retries back off to 60 s. Source: Kubernetes docs, "StatefulSet";
// spec "Scheduler and workloads", 13.
#pragma once

#include "api/object/controller_revision.h"
#include "api/object/storage.h"
#include "api/object/workload.h"
#include "client/wake_up.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/queue_metrics.h"
#include "controllers/shared/shared.h"
#include "controllers/workloads/eviction_holds.h"
#include "controllers/workloads/expectations.h"
#include "policy/workloads/stateful_claims.h"
#include "policy/workloads/stateful_revisions.h"
#include "telemetry/metrics.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::controllers {

class StatefulSetController {
 public:
  struct Caches {
    client::ObjectCache<api::StatefulSet>& sets;
    client::ObjectCache<api::PersistentVolumeClaim>& claims;
    client::ObjectCache<api::ControllerRevision>& revisions;
  };

  StatefulSetController(Shared shared, Caches caches, telemetry::Registry& metrics,
                        EvictionHolds::Mode eviction_backoff = EvictionHolds::Mode::kOff);
  StatefulSetController(const StatefulSetController&) = delete;
  StatefulSetController& operator=(const StatefulSetController&) = delete;

  /// Begins to sync. Called once the caches are filled.
  void start(Now now);
  /// Syncs the StatefulSets that are due; called at the end of every step.
  void run(Now now);

  const EvictionHolds& eviction_holds() const { return holds_; }

 private:
  using SetPtr = std::shared_ptr<const api::StatefulSet>;

  void on_set(const SetPtr& before, const SetPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void on_claim(const workloads::ClaimPtr& before, const workloads::ClaimPtr& after, Now now);
  void on_revision(const workloads::RevisionPtr& before, const workloads::RevisionPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void enqueue_owner(const api::ObjectMeta& owned, Now now);
  void arm();

  void sync(const std::string& key, Now now);
  client::ApiClient::Done retry_unless_done(const api::StatefulSet& set);
  /// The pods of the set; adopts and releases on the way.
  std::vector<PodPtr> claim_pods(const api::StatefulSet& set);
  std::vector<workloads::RevisionPtr> claim_revisions(const api::StatefulSet& set);

  Shared shared_;
  Caches caches_;
  OwnedPods pods_;
  OwnedObjects<api::ControllerRevision> revisions_;
  client::WorkQueue queue_;
  QueueMetrics queue_metrics_;
  ExpectationTable expectations_{shared_.pods};
  EvictionHolds holds_;
  std::map<std::string, std::string> key_by_uid_;
  client::WakeUp wake_up_;
  bool started_ = false;
};

}  // namespace spillway::controllers
