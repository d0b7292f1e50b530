// One sync of a StatefulSet, from its claimed pods to its status. The order of its steps is at the top of
// stateful_set_sync.cc. The pods, claims and their order are decided by policy/workloads/stateful_plan.h; its writes
// are sent one after the other. In order, the first that fails ends the writes; in parallel, a failed write skips the
// later ones of its own pod only. Thread: loop. Bounds: one call under way; kRevisionNamesMax names of a revision are
// tried. Source: Kubernetes docs, "StatefulSet"; spec "Scheduler and workloads", 13.
#pragma once

#include "api/object/controller_revision.h"
#include "api/object/storage.h"
#include "api/object/workload.h"
#include "client/object_cache.h"
#include "client/work_queue.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "controllers/shared/step_run.h"
#include "controllers/workloads/eviction_holds.h"
#include "controllers/workloads/expectations.h"
#include "policy/workloads/stateful_plan.h"
#include "policy/workloads/stateful_revisions.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::controllers {

/// The parts of the controller that all syncs of StatefulSets share.
struct StatefulSetTools {
  Shared shared;
  client::ObjectCache<api::PersistentVolumeClaim>& claims;
  ExpectationTable& expectations;
  EvictionHolds& holds;
  client::WorkQueue& queue;
};

/// The set as owner of pods and revisions.
Owner owner_of(const api::StatefulSet& set);

/// The path of a ControllerRevision in the namespace of `neighbour`, or of all of them if `name` is empty.
std::string history_path(const api::ObjectMeta& neighbour, std::string_view name = {});

enum class StatefulSetStep : std::uint8_t {
  kRevisions,       // find the revision of the present template
  kNewRevision,     // create the new revision, if it does not exist
  kNamesake,        // read the object that has the name of the new one; back to kRevisions if it is another revision
  kRevisionNumber,  // give an old revision that is the present one again the highest number
  kPlan,            // decide what to create, repair and delete
  kWrites,          // send the next write; back to kWrites until all have been sent
  kStatus,          // write the status if it differs
  kEnd,             // delete surplus revisions; requeue the set if a write has failed
};

class StatefulSetSync final : public StepRun<StatefulSetSync, StatefulSetStep> {
 public:
  using SetPtr = std::shared_ptr<const api::StatefulSet>;
  using Step = StatefulSetStep;

  /// `pods`, `revisions`: those that the set owns or is adopting. The parts of `tools` must outlive the sync.
  StatefulSetSync(const StatefulSetTools& tools, SetPtr set, std::vector<PodPtr> pods,
                  std::vector<workloads::RevisionPtr> revisions);

 private:
  Next run(Step step, Now now) override;

  // The revision of the present template.
  Next find_revisions();
  Next create_revision();
  Next on_revision_created(const Result<api::Json>& outcome, Now now);
  Next read_namesake();
  Next on_namesake(const Result<api::Json>& outcome, Now now);
  Next renumber_revision();
  Next on_renumbered(const Result<api::Json>& outcome, Now now);

  // The writes of the plan.
  Next plan(Now now);
  Next send_next(Now now);
  Next send(const workloads::CreateClaim& write, Now now);
  Next on_claim_created(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::CreateStatefulPod& write, Now now);
  Next on_pod_created(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::OwnClaim& write, Now now);
  Next on_claim_owned(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::RepairPod& write, Now now);
  Next on_pod_mended(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::DeleteStatefulPod& write, Now now);
  Next on_pod_deleted(const Result<api::Json>& outcome, Now now);
  Next send(const workloads::CannotCreate& write, Now now);

  Next write_status();
  Next on_status_written(const Result<api::Json>& outcome, Now now);
  Next end(Now now);

  /// Later writes of the pod are skipped; in order, all of them.
  Next fail_pod(const std::string& pod, const Error& error);
  /// Ends the sync and requeues the set after its back-off.
  Next give_up(const Error& error, Now now);
  ExpectationTable::Requeue requeue() const;

  /// The write that was sent last.
  template <typename Write>
  const Write& sent() const {
    return std::get<Write>(plan_.steps[next_write_ - 1]);
  }

  /// The event of a pod that has ended and is deleted so that another takes its place.
  void record_recreation(const api::Pod& pod, Now now);
  /// `verb`: "Create", "Update" or "Delete".
  void record_pod(std::string_view verb, std::string_view pod, const Outcome& outcome, Now now);
  void record_claim(std::string_view pod, std::string_view claim, const Outcome& outcome, Now now);

  const StatefulSetTools tools_;
  SetPtr set_;
  std::string key_;
  std::vector<PodPtr> pods_;
  std::vector<workloads::RevisionPtr> revisions_;
  workloads::RevisionPtr current_;
  workloads::RevisionPtr update_;
  std::optional<api::ControllerRevision> new_revision_;  // revision to be created
  std::optional<std::int64_t> new_number_;               // for update_
  std::int32_t collisions_ = 0;
  int names_tried_ = 0;
  workloads::StatefulPlan plan_;
  std::size_t next_write_ = 0;    // index into the steps of the plan
  std::set<std::string> failed_;  // pods of which a write has failed
  std::optional<Error> error_;    // the last error
};

}  // namespace spillway::controllers
