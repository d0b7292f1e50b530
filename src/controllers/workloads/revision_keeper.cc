#include "controllers/workloads/revision_keeper.h"

#include "api/codec/codec.h"
#include "controllers/shared/step_run.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace spillway::controllers {

enum class RevisionStep : std::uint8_t {
  kCreation,   // create the revision
  kNamesake,   // read the object that has its name, if one has
  kCollision,  // write the status that makes the next creation choose another name, if it is another revision
};

/// Creates one ControllerRevision, step by step. Thread: loop.
class RevisionCreation final : public StepRun<RevisionCreation, RevisionStep> {
 public:
  using SetPtr = std::shared_ptr<const api::DaemonSet>;
  using Step = RevisionStep;
  /// An error: the revision was not created by this call.
  using Done = std::function<void(const Outcome& outcome, Now now)>;

  RevisionCreation(Shared shared, SetPtr set, api::ControllerRevision revision, Done done);

 private:
  Next run(Step step, Now now) override;
  Next create();
  Next on_created(const Result<api::Json>& outcome, Now now);
  Next read_namesake();
  Next on_namesake(const Result<api::Json>& outcome, Now now);
  Next write_collision();
  Next on_collision_written(const Result<api::Json>& outcome, Now now);
  Next end(const Outcome& outcome, Now now);

  Shared shared_;
  SetPtr set_;
  api::ControllerRevision revision_;
  Done done_;
};

namespace {

constexpr std::array kRevisionSteps = {RevisionStep::kCreation, RevisionStep::kNamesake, RevisionStep::kCollision};

/// A set is synced again that long after a call for its history has failed: long enough for the cache to show what made
/// it fail, and short enough for an update of the set not to be held up noticeably.
constexpr Duration kRequeueAfter = seconds(1);

std::string revision_path(const std::string& ns, std::string_view name = {}) {
  return client::object_path(api::ControllerRevision::kApiVersion, "controllerrevisions", ns, name);
}

Owner revision_owner(const api::DaemonSet& set) {
  return {api::DaemonSet::kApiVersion, api::DaemonSet::kKind, set.metadata};
}

}  // namespace

RevisionKeeper::RevisionKeeper(Shared shared, client::ObjectCache<api::ControllerRevision>& cache, Changed changed)
    : shared_(shared), changed_(std::move(changed)) {
  cache.listen({[this](const auto& before, const auto& after, Now now) { on_revision(before, after, now); }});
}

void RevisionKeeper::on_revision(const workloads::RevisionPtr& before, const workloads::RevisionPtr& after, Now now) {
  revisions_.on_change(before, after);
  for (const workloads::RevisionPtr& revision : {before, after}) {
    const api::OwnerReference* owner = revision ? api::controller_of(revision->metadata) : nullptr;
    if (owner != nullptr) changed_(owner->uid, now);
  }
}

std::optional<std::string> RevisionKeeper::keep(const SetPtr& set, const std::set<std::string>& used, Now now) {
  const std::string& uid = set->metadata.uid;
  if (under_way_.contains(uid)) return std::nullopt;
  adopt(*set);
  const workloads::RevisionPlan plan = workloads::plan_revisions(*set, revisions_.of(uid), used);
  if (plan.create) {
    create(set, *plan.create, now);
    return std::nullopt;
  }
  if (plan.renumber) renumber(set, *plan.current, *plan.renumber);
  for (const workloads::RevisionPtr& old : plan.remove) {
    shared_.client.remove(revision_path(old->metadata.ns, old->metadata.name), delete_options(old->metadata),
                          requeue_if_it_fails(uid));
  }
  return workloads::revision_hash(plan.current->metadata);
}

client::ApiClient::Done RevisionKeeper::requeue_if_it_fails(const std::string& uid) {
  return [this, uid](const Result<api::Json>& outcome, Now now) {
    if (!outcome) requeue_later(uid, now);
  };
}

void RevisionKeeper::requeue_later(const std::string& uid, Now now) {
  shared_.client.at(now.mono + kRequeueAfter, [this, uid](Now then) { changed_(uid, then); });
}

void RevisionKeeper::adopt(const api::DaemonSet& set) {
  for (const workloads::RevisionPtr& orphan : revisions_.orphans_in(set.metadata.ns)) {
    if (orphan->metadata.deletion_timestamp || !set.selector.matches(orphan->metadata.labels)) continue;
    shared_.client.patch(revision_path(orphan->metadata.ns, orphan->metadata.name), client::PatchType::kStrategicMerge,
                         adoption_patch(revision_owner(set), orphan->metadata), requeue_if_it_fails(set.metadata.uid));
  }
}

void RevisionKeeper::create(const SetPtr& set, const api::ControllerRevision& revision, Now now) {
  under_way_.insert(set->metadata.uid);
  const auto done = [this, uid = set->metadata.uid](const Outcome& outcome, Now then) { end_call(uid, outcome, then); };
  std::make_shared<RevisionCreation>(shared_, set, revision, done)->advance(now);
}

void RevisionKeeper::renumber(const SetPtr& set, const api::ControllerRevision& revision, std::int64_t number) {
  under_way_.insert(set->metadata.uid);
  const api::Json patch = api::Json::object(
      {{"metadata",
        api::Json::object({{"uid", revision.metadata.uid}, {"resourceVersion", revision.metadata.resource_version}})},
       {"revision", number}});
  shared_.client.patch(revision_path(revision.metadata.ns, revision.metadata.name), client::PatchType::kMerge, patch,
                       [this, uid = set->metadata.uid](const Result<api::Json>& outcome, Now then) {
                         end_call(uid, outcome ? Outcome() : Outcome(outcome.error()), then);
                       });
}

/// The watch reports a write that succeeded; after a failed one the set is synced again a little later.
void RevisionKeeper::end_call(const std::string& uid, const Outcome& outcome, Now now) {
  under_way_.erase(uid);
  if (outcome) return changed_(uid, now);
  requeue_later(uid, now);
}

RevisionCreation::RevisionCreation(Shared shared, SetPtr set, api::ControllerRevision revision, Done done)
    : StepRun(kRevisionSteps),
      shared_(shared),
      set_(std::move(set)),
      revision_(std::move(revision)),
      done_(std::move(done)) {}

Next RevisionCreation::run(Step step, Now /*now*/) {
  switch (step) {
    case Step::kCreation:
      return create();
    case Step::kNamesake:
      return read_namesake();
    case Step::kCollision:
      return write_collision();
  }
  return Next::kEnd;
}

Next RevisionCreation::create() {
  api::Json document = api::encode(revision_);
  document.make({"metadata", "ownerReferences"}) = api::Json::array({owner_reference(revision_owner(*set_))});
  shared_.client.create(revision_path(set_->metadata.ns), std::move(document), then(&RevisionCreation::on_created));
  return Next::kWait;
}

Next RevisionCreation::on_created(const Result<api::Json>& outcome, Now now) {
  if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) return Next::kStep;
  return end(outcome ? Outcome() : Outcome(outcome.error()), now);
}

/// The name is taken by the same revision, which the cache will show, or by another one: the next name differs then.
Next RevisionCreation::read_namesake() {
  shared_.client.get(revision_path(set_->metadata.ns, revision_.metadata.name), then(&RevisionCreation::on_namesake));
  return Next::kWait;
}

Next RevisionCreation::on_namesake(const Result<api::Json>& outcome, Now now) {
  const api::Json* data = outcome ? outcome->find("data") : nullptr;
  if (!outcome || (data != nullptr && *data == revision_.data)) {
    return end(make_error(ErrorCode::kConflict, "its revision is there"), now);
  }
  return Next::kStep;
}

Next RevisionCreation::write_collision() {
  const api::ObjectMeta& metadata = set_->metadata;
  const api::Json patch = api::Json::object(
      {{"metadata", api::Json::object({{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}})},
       {"status", api::Json::object({{"collisionCount", set_->status.collision_count.value_or(0) + 1}})}});
  shared_.client.patch(
      client::object_path(api::DaemonSet::kApiVersion, "daemonsets", metadata.ns, metadata.name, "status"),
      client::PatchType::kMerge, patch, then(&RevisionCreation::on_collision_written));
  return Next::kWait;
}

Next RevisionCreation::on_collision_written(const Result<api::Json>& /*outcome*/, Now now) {
  return end(make_error(ErrorCode::kConflict, "the name is taken"), now);
}

Next RevisionCreation::end(const Outcome& outcome, Now now) {
  done_(outcome, now);
  return Next::kEnd;
}

}  // namespace spillway::controllers
