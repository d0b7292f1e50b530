// Keeps the ControllerRevisions of DaemonSets: creates the one of the present template, numbers it, adopts orphans, and
// deletes those beyond the history, as policy/workloads/revision_history.h decides. Thread: loop.
// Bounds: one creation or renumbering under way per set. Source: Kubernetes docs, "Perform a Rollback on a DaemonSet".
#pragma once

#include "api/object/controller_revision.h"
#include "api/object/workload.h"
#include "controllers/shared/owned_pods.h"
#include "controllers/shared/shared.h"
#include "policy/workloads/revision_history.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace spillway::controllers {

class RevisionKeeper {
 public:
  using SetPtr = std::shared_ptr<const api::DaemonSet>;
  /// Requests a sync of the owner with this uid.
  using Changed = std::function<void(const std::string& owner_uid, Now now)>;

  RevisionKeeper(Shared shared, client::ObjectCache<api::ControllerRevision>& cache, Changed changed);
  RevisionKeeper(const RevisionKeeper&) = delete;
  RevisionKeeper& operator=(const RevisionKeeper&) = delete;

  /// The hash of the present template, which its new pods are labelled with; nullopt: its revision is being made.
  /// `used`: the hashes of its pods.
  std::optional<std::string> keep(const SetPtr& set, const std::set<std::string>& used, Now now);

 private:
  using Revisions = OwnedObjects<api::ControllerRevision>;

  void on_revision(const workloads::RevisionPtr& before, const workloads::RevisionPtr& after, Now now);
  /// A completion of a call that nothing waits for: after a failure the set is synced again, a little later.
  client::ApiClient::Done requeue_if_it_fails(const std::string& uid);
  void requeue_later(const std::string& uid, Now now);
  void adopt(const api::DaemonSet& set);
  void create(const SetPtr& set, const api::ControllerRevision& revision, Now now);
  void renumber(const SetPtr& set, const api::ControllerRevision& revision, std::int64_t number);
  void end_call(const std::string& uid, const Outcome& outcome, Now now);

  Shared shared_;
  Changed changed_;
  Revisions revisions_;
  std::set<std::string> under_way_;  // uids of sets
};

}  // namespace spillway::controllers
