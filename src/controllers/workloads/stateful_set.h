// Keeps the pods of StatefulSets: each has its ordinal, its name and its claims, and they are created, updated and
// deleted in their order. policy/workloads/stateful_plan.h decides each sync; its steps are executed one after the
// other. In order, the first failure ends the sync; in parallel, a failure delays its own pod only. A set is not synced
// while the cache does not show a created or deleted pod. Thread: loop. Bounds: one sync of a set at a time, one call
// of it in flight; retries back off to 60 s. Source: Kubernetes docs, "StatefulSet"; spec "Scheduler and workloads",
// 13.
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
#include "policy/workloads/stateful_plan.h"
#include "policy/workloads/stateful_revisions.h"
#include "telemetry/metrics.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
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

  /// Once the caches are filled.
  void start(Now now);
  /// Works off what is due; called at the end of every step.
  void run(Now now);

  const EvictionHolds& eviction_holds() const { return holds_; }

 private:
  using SetPtr = std::shared_ptr<const api::StatefulSet>;
  struct Look;
  using LookPtr = std::shared_ptr<Look>;

  void on_set(const SetPtr& before, const SetPtr& after, Now now);
  void on_pod(const PodPtr& before, const PodPtr& after, Now now);
  void on_claim(const workloads::ClaimPtr& before, const workloads::ClaimPtr& after, Now now);
  void on_revision(const workloads::RevisionPtr& before, const workloads::RevisionPtr& after, Now now);
  void enqueue(const std::string& key, Now now);
  void enqueue_owner(const api::ObjectMeta& owned, Now now);
  void arm();

  void look(const std::string& key, Now now);
  /// The set's pods; adopts and releases on the way.
  client::ApiClient::Done retry_unless_done(const api::StatefulSet& set);
  std::vector<PodPtr> claim_pods(const api::StatefulSet& set);
  std::vector<workloads::RevisionPtr> claim_revisions(const api::StatefulSet& set);
  // The revision of the present template.
  void find_revisions(const LookPtr& look, Now now);
  void make_revision(const LookPtr& look, const api::ControllerRevision& revision);
  void on_revision_name_taken(const LookPtr& look, const api::ControllerRevision& revision);
  void renumber(const LookPtr& look, const api::ControllerRevision& revision, std::int64_t number);
  void decide(const LookPtr& look, Now now);

  // The steps.
  void carry_on(const LookPtr& look, Now now);
  void send(const LookPtr& look, const workloads::CreateClaim& step, Now now);
  void send(const LookPtr& look, const workloads::CreateStatefulPod& step, Now now);
  void send(const LookPtr& look, const workloads::OwnClaim& step, Now now);
  void send(const LookPtr& look, const workloads::MendPod& step, Now now);
  void send(const LookPtr& look, const workloads::DeleteStatefulPod& step, Now now);
  void send(const LookPtr& look, const workloads::CannotCreate& step, Now now);
  void fail(const LookPtr& look, const std::string& pod, const Error& error, Now now);
  void write_status(const LookPtr& look, Now now);
  void cut_history(const Look& look);
  void end(const LookPtr& look, Now now);
  void give_up(const LookPtr& look, const Error& error, Now now);

  /// The event of a pod that has ended and is deleted so that another takes its place.
  void record_recreation(const api::StatefulSet& set, const api::Pod& pod, Now now);
  void tell_pod(const Look& look, std::string_view verb, std::string_view pod, const Outcome& outcome, Now now);
  void tell_claim(const Look& look, std::string_view pod, std::string_view claim, const Outcome& outcome, Now now);

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
