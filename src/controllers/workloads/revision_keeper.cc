#include "controllers/workloads/revision_keeper.h"

#include "api/codec/codec.h"

#include <utility>

namespace spillway::controllers {

namespace {

constexpr Duration kLookAgainAfter = seconds(1);

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

std::optional<std::string> RevisionKeeper::keep(const SetPtr& set, const std::set<std::string>& used, Now) {
  const std::string& uid = set->metadata.uid;
  if (under_way_.contains(uid)) return std::nullopt;
  adopt(*set);
  const workloads::RevisionPlan plan = workloads::plan_revisions(*set, revisions_.of(uid), used);
  if (plan.create) {
    create(set, *plan.create);
    return std::nullopt;
  }
  if (plan.renumber) renumber(set, *plan.current, *plan.renumber);
  for (const workloads::RevisionPtr& old : plan.remove) {
    shared_.client.remove(revision_path(old->metadata.ns, old->metadata.name), delete_options(old->metadata),
                          look_again_if_it_fails(uid));
  }
  return workloads::revision_hash(plan.current->metadata);
}

client::ApiClient::Done RevisionKeeper::look_again_if_it_fails(const std::string& uid) {
  return [this, uid](const Result<api::Json>& outcome, Now now) {
    if (outcome) return;
    shared_.client.at(now.mono + kLookAgainAfter, [this, uid](Now then) { changed_(uid, then); });
  };
}

void RevisionKeeper::adopt(const api::DaemonSet& set) {
  for (const workloads::RevisionPtr& orphan : revisions_.orphans_in(set.metadata.ns)) {
    if (orphan->metadata.deletion_timestamp || !set.selector.matches(orphan->metadata.labels)) continue;
    shared_.client.patch(revision_path(orphan->metadata.ns, orphan->metadata.name), client::PatchType::kStrategicMerge,
                         adoption_patch(revision_owner(set), orphan->metadata),
                         look_again_if_it_fails(set.metadata.uid));
  }
}

void RevisionKeeper::create(const SetPtr& set, const api::ControllerRevision& revision) {
  under_way_.insert(set->metadata.uid);
  api::Json document = api::encode(revision);
  document.make({"metadata", "ownerReferences"}) = api::Json::array({owner_reference(revision_owner(*set))});
  shared_.client.create(revision_path(set->metadata.ns), std::move(document),
                        [this, set, revision](const Result<api::Json>& outcome, Now then) {
                          if (!outcome && outcome.error().code == ErrorCode::kAlreadyExists) {
                            return on_name_taken(set, revision);
                          }
                          end_call(set->metadata.uid, outcome ? Outcome() : Outcome(outcome.error()), then);
                        });
}

/// The name is taken by the same revision, which the cache will show, or by another one: the next name differs then.
void RevisionKeeper::on_name_taken(const SetPtr& set, const api::ControllerRevision& revision) {
  shared_.client.get(revision_path(set->metadata.ns, revision.metadata.name), [this, set, revision](
                                                                                  const Result<api::Json>& outcome,
                                                                                  Now then) {
    const api::Json* data = outcome ? outcome->find("data") : nullptr;
    if (!outcome || (data != nullptr && *data == revision.data)) {
      return end_call(set->metadata.uid, make_error(ErrorCode::kConflict, "its revision is there"), then);
    }
    const api::Json patch = api::Json::object(
        {{"metadata",
          api::Json::object({{"uid", set->metadata.uid}, {"resourceVersion", set->metadata.resource_version}})},
         {"status", api::Json::object({{"collisionCount", set->status.collision_count.value_or(0) + 1}})}});
    shared_.client.patch(
        client::object_path(api::DaemonSet::kApiVersion, "daemonsets", set->metadata.ns, set->metadata.name, "status"),
        client::PatchType::kMerge, patch, [this, set](const Result<api::Json>&, Now later) {
          end_call(set->metadata.uid, make_error(ErrorCode::kConflict, "the name is taken"), later);
        });
  });
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
  shared_.client.at(now.mono + kLookAgainAfter, [this, uid](Now then) { changed_(uid, then); });
}

}  // namespace spillway::controllers
