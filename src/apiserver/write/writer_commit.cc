// Writer: the last steps of a write. What was chosen for it is made sure of, then it goes to the store, and begins anew
// if it lost a race.
#include "apiserver/resource/object_change.h"
#include "apiserver/write/write_state.h"
#include "apiserver/write/writer.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

constexpr int kCreateAttempts = 8;       // names generated
constexpr int kUpdateAttempts = 64;      // races lost
constexpr int kAskedUpdateAttempts = 5;  // by updates that webhooks were asked about
constexpr int kChoices = 64;             // that other servers have made as well

bool has_elements(const Json* list) {
  return list != nullptr && list->if_array() != nullptr && !list->if_array()->empty();
}

/// The update took the last thing that held a deletion back.
bool completes_deletion(const Json& object, const Json& old) {
  if (old.string_at({"metadata", "deletionTimestamp"}).empty()) return false;
  if (has_elements(object.at({"metadata", "finalizers"})) || has_elements(object.at({"spec", "finalizers"}))) {
    return false;
  }
  if (!has_elements(old.at({"metadata", "finalizers"})) && !has_elements(old.at({"spec", "finalizers"}))) return false;
  const Json* grace = old.at({"metadata", "deletionGracePeriodSeconds"});
  return grace == nullptr || grace->if_int64().value_or(0) == 0;
}

Status lost_choices() {
  return make_error(ErrorCode::kInternalError, "other servers took what was chosen {} times", kChoices);
}

}  // namespace

void Writer::try_create(CreatePtr state) {
  const Resource& resource = core_.cache.of(*state->job.resource).resource();
  const std::string name(state->object.string_at({"metadata", "name"}));
  const std::string key = object_key(state->job.ns, name);

  const auto exists = [](const Resource& taken, const std::string& taken_name, const ObjectPtr& there) {
    Status status = api::already_exists_status(taken.group_resource(), taken_name);
    if (there && there->meta.deleting) status.message = "object is being deleted: " + status.message;
    return status;
  };
  const ObjectPtr there = core_.cache.of(resource).find(key);
  const bool dry_run = state->job.context.dry_run;
  // It was asked for as a patch, or waited while the kind began to go: objects that come now are never cleared away.
  if (resource.custom != nullptr && (core_.cache.of(resource).is_detached() || !resource.verbs.has(Verb::kCreate))) {
    reservations_.give_back(state->hold);
    return state->done(api::method_not_allowed_status());
  }
  if (there && (dry_run || state->prefix.empty())) return state->done(exists(resource, name, there));
  if (!dry_run && !reservations_.is_secured(state->hold)) return secure_create(state);
  if (!state->charged) return charge_create(state);
  if (dry_run) {
    return state->done(Written{Committer::imagine(resource, state->object), true, false, std::move(state->warnings)});
  }
  Json document = state->prefix.empty() ? std::move(state->object) : state->object;
  committer_.put(resource, key, std::move(document), store::Revision(0), Committer::Checks::kPassed,
                 [this, state, &resource, name, exists,
                  step = StoreStep(core_, state->job.context.asked, resource)](const StatusResult<Commit>& result) {
                   step.end(result);
                   if (!result) return state->done(result.error());
                   if (result->committed) {
                     reservations_.settle(state->hold);
                     return state->done(Written{result->object, true, false, std::move(state->warnings)});
                   }
                   if (state->prefix.empty() || ++state->attempts == kCreateAttempts) {
                     reservations_.give_back(state->hold);
                     return state->done(exists(resource, name, result->object));
                   }
                   state->object["metadata"]["name"] = generated_name(state->prefix, core_.rng);
                   Reservations::rename(state->hold,
                                        object_key(state->job.ns, state->object.string_at({"metadata", "name"})));
                   if (const auto name_create = state->job.resource->hooks->name_create) name_create(state->object);
                   try_create(state);
                 });
}

void Writer::secure_create(const CreatePtr& state) {
  reservations_.secure(state->hold, [this, state](StatusResult<bool> ours) {
    if (!ours) return state->done(ours.error());
    if (*ours) return try_create(state);
    reservations_.give_back(state->hold);
    state->hold.reset();
    CreateJob job = *std::move(state->again);
    if (++job.lost_choices == kChoices) return state->done(lost_choices());
    create(std::move(job), std::move(state->done));
  });
}

void Writer::charge_create(const CreatePtr& state) {
  const Resource& resource = core_.cache.of(*state->job.resource).resource();
  quotas_.charge({.resource = resource, .object = state->object, .dry_run = state->job.context.dry_run},
                 [this, state](StatusResult<QuotaDesk::PledgePtr> pledge) {
                   if (!pledge) {
                     reservations_.give_back(state->hold);
                     return state->done(pledge.error());
                   }
                   state->charged = true;
                   state->pledge = *std::move(pledge);
                   try_create(state);
                 });
}

void Writer::commit_update(const UpdatePtr& state, Json object, const Json& old) {
  const UpdateJob& job = state->job;
  if (state->dropped) state->warnings.push_back(*state->dropped);
  const Resource& resource = core_.cache.of(*job.resource).resource();
  const auto unchanged = [&] {
    finish_update(state, Written{state->current, false, false, std::move(state->warnings)});
  };
  state->deletes = completes_deletion(object, old);
  object = at_rest_of(resource, std::move(object));
  if (!state->deletes) {
    if (object == old) return unchanged();
    if (!job.applied) object = tracked(resource, &old, std::move(object), job.context, job.part);
    if (same_but_manager_times(object, old)) return unchanged();
  }
  const bool may_grow = job.part == SubresourceId::kNone && !job.trusted && !state->deletes;
  may_grow ? charge_update(state, std::move(object), old) : secure_update(state, std::move(object));
}

void Writer::charge_update(const UpdatePtr& state, Json object, const Json& old) {
  const UpdateJob& job = state->job;
  const auto changed = std::make_shared<Json>(std::move(object));
  quotas_.charge({.resource = core_.cache.of(*job.resource).resource(),
                  .object = *changed,
                  .old = &old,
                  .dry_run = job.context.dry_run,
                  .pledged = state->pledge},
                 [this, state, changed](StatusResult<QuotaDesk::PledgePtr> pledge) {
                   if (!pledge) {
                     reservations_.give_back(state->hold);
                     return finish_update(state, pledge.error());
                   }
                   state->pledge = *std::move(pledge);
                   secure_update(state, std::move(*changed));
                 });
}

void Writer::secure_update(const UpdatePtr& state, Json object) {
  if (state->job.context.dry_run) {
    const Resource& resource = core_.cache.of(*state->job.resource).resource();
    return finish_update(
        state, Written{Committer::imagine(resource, object), false, state->deletes, std::move(state->warnings)});
  }
  if (reservations_.is_secured(state->hold)) return store_update(state, std::move(object));
  reservations_.secure(state->hold, [this, state, object = std::move(object)](StatusResult<bool> ours) mutable {
    if (!ours) return finish_update(state, ours.error());
    if (*ours) return store_update(state, std::move(object));
    reservations_.give_back(state->hold);
    if (++state->attempts == kChoices) return finish_update(state, lost_choices());
    begin_update(state);
  });
}

void Writer::store_update(const UpdatePtr& state, Json object) {
  const Resource& resource = core_.cache.of(*state->job.resource).resource();
  const ObjectPtr current = state->current;
  auto committed = [this, state,
                    step = StoreStep(core_, state->job.context.asked, resource)](const StatusResult<Commit>& result) {
    step.end(result);
    if (!result) return finish_update(state, result.error());
    if (result->committed) {
      reservations_.settle(state->hold);
      return finish_update(state, Written{result->object, false, state->deletes, std::move(state->warnings)});
    }
    reservations_.give_back(state->hold);
    const Resource& raced = core_.cache.of(*state->job.resource).resource();
    if (++state->attempts == (state->admission ? kAskedUpdateAttempts : kUpdateAttempts)) {
      return finish_update(state, api::stale_version_status(raced.group_resource(), state->job.name));
    }
    try_update(state, result->object);
  };
  if (state->deletes) {
    committer_.erase(resource, current->key, std::move(object), current->revision, std::move(committed));
  } else {
    const auto checks = state->job.trusted ? Committer::Checks::kSkipped : Committer::Checks::kPassed;
    committer_.put(resource, current->key, std::move(object), current->revision, checks, std::move(committed));
  }
}

}  // namespace spillway::apiserver
