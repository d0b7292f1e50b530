// Writer: writes that webhooks are asked about. What they are shown, and what is made of what they say.
#include "api/object/meta.h"
#include "apiserver/write/write_state.h"
#include "apiserver/write/writer.h"

#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::StatusResult;

/// The object as its resource, or the endpoint of it, shows it.
Json shown(const Resource& row, const std::optional<EndpointForm>& form, const Json& object) {
  if (form) return form->show(object);
  return row.from_stored(object);
}

/// A new object before the server has given it what it alone gives.
Json shown_new(const Resource& row, const Json& object, bool name_is_generated) {
  Json told = shown(row, std::nullopt, object);
  Json& metadata = told["metadata"];
  metadata.erase({"uid"});
  metadata.erase({"generation"});
  metadata["creationTimestamp"] = Json();
  if (name_is_generated) metadata.erase({"name"});
  return told;
}

void keep_managers(Json& object, const Json& before) {
  if (const Json* managers = before.at({"metadata", "managedFields"})) {
    object.make({"metadata", "managedFields"}) = *managers;
  } else {
    object.erase({"metadata", "managedFields"});
  }
}

/// A webhook may change an object, not make another one of it.
StatusResult<void> check_same_object(const Json& object, const Json& before, bool name_is_generated) {
  for (const std::string_view member : {"name", "namespace"}) {
    if (name_is_generated && member == "name") continue;
    if (object.string_at({"metadata", member}) != before.string_at({"metadata", member})) {
      return make_error(ErrorCode::kBadRequest, "a webhook has changed metadata.{} of the object, which is fixed",
                        member);
    }
  }
  return {};
}

}  // namespace

void Writer::mutate_create(const CreatePtr& state) {
  const bool generated = !state->prefix.empty();
  const Json before = shown_new(*state->job.resource, state->object, generated);
  state->admission->mutate(before, Json(), [this, state, before, generated](StatusResult<std::optional<Json>> result) {
    if (!result) return state->done(result.error());
    if (!*result) return validate_create(state);
    Json object = **std::move(result);
    if (const auto same = check_same_object(object, before, generated); !same) return state->done(same.error());
    keep_managers(object, before);
    state->object = std::move(object);
    state->warnings.clear();
    if (const auto admitted = prepare_create(*state); !admitted) return state->done(admitted.error());
    if (state->admission->may_repeat()) return mutate_create(state);
    validate_create(state);
  });
}

void Writer::validate_create(const CreatePtr& state) {
  if (const auto checked = check_create(*state); !checked) return state->done(checked.error());
  if (!state->admission || !state->admission->validates()) return finish_create(state);
  state->admission->validate(shown(*state->job.resource, std::nullopt, state->object), Json(),
                             [this, state](const StatusResult<void>& result) {
                               if (!result) return state->done(result.error());
                               finish_create(state);
                             });
}

// Others may write the object while webhooks are asked about an update: the version that it replaces is named, and if
// it was not the last one, all is done again.

void Writer::mutate_update(const UpdatePtr& state, const Json& object, const api::DocumentPtr& old) {
  leave_queue(state);
  const UpdateJob& job = state->job;
  const Json before = shown(*job.resource, job.form, object);
  state->admission->mutate(before, shown(*job.resource, job.form, *old),
                           [this, state, object, old, before](StatusResult<std::optional<Json>> result) {
                             if (!result) return finish_update(state, result.error());
                             if (!*result) return validate_update(state, object, old);
                             state->mutated = **std::move(result);
                             if (const auto same = check_same_object(*state->mutated, before, false); !same) {
                               return finish_update(state, same.error());
                             }
                             if (state->job.applied) keep_managers(*state->mutated, before);
                             if (state->admission->may_repeat()) return advance_update(state);
                             state->warnings.clear();
                             StatusResult<Json> made = prepare_update(*state, *old);
                             if (!made) return finish_update(state, made.error());
                             validate_update(state, *std::move(made), old);
                           });
  begin_next();
}

void Writer::validate_update(const UpdatePtr& state, Json object, const api::DocumentPtr& old) {
  const UpdateJob& job = state->job;
  if (!job.trusted) {
    const Resource& resource = core_.cache.of(*job.resource).resource();
    if (const auto checked = check_update(*state, resource, object, *old); !checked) {
      return finish_update(state, checked.error());
    }
  }
  if (!state->admission || !state->admission->validates()) return commit_update(state, std::move(object), *old);
  leave_queue(state);
  Json told = shown(*job.resource, job.form, object);
  state->admission->validate(std::move(told), shown(*job.resource, job.form, *old),
                             [this, state, old, object = std::move(object)](const StatusResult<void>& result) mutable {
                               if (!result) return finish_update(state, result.error());
                               commit_update(state, std::move(object), *old);
                             });
  begin_next();
}

}  // namespace spillway::apiserver
