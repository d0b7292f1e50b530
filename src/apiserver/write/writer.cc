#include "apiserver/write/writer.h"

#include "api/object/meta.h"
#include "api/text/time_text.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/resource/metadata_rules.h"
#include "apiserver/resource/object_change.h"
#include "apiserver/write/write_state.h"

#include <algorithm>
#include <array>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

/// Members of metadata that a client does not set on a new object.
constexpr std::string_view kNotOfClients[] = {"uid", "creationTimestamp", "deletionTimestamp", "selfLink",
                                              "deletionGracePeriodSeconds"};

Endpoint endpoint_of(SubresourceId part) {
  switch (part) {
    case SubresourceId::kStatus:
      return Endpoint::kStatus;
    case SubresourceId::kApproval:
      return Endpoint::kApproval;
    case SubresourceId::kEphemeralContainers:
      return Endpoint::kEphemeralContainers;
    case SubresourceId::kFinalize:
      return Endpoint::kFinalize;
    case SubresourceId::kNone:
    case SubresourceId::kScale:
    case SubresourceId::kBinding:
    case SubresourceId::kEviction:
    case SubresourceId::kLog:
    case SubresourceId::kExec:
    case SubresourceId::kToken:
    case SubresourceId::kProxy:
      return Endpoint::kMain;
  }
  return Endpoint::kMain;
}

/// Member `name` of `to` becomes what it is in `from`, absence included.
void keep_member(Json& to, const Json& from, std::string_view name) {
  if (const Json* value = from.find(name)) {
    to[name] = *value;
  } else {
    to.erase({name});
  }
}

/// What a client sends for members that the server sets: some are put right, others stay, to be refused if they differ.
void keep_server_members(Json& metadata, const Json& old, bool trusted) {
  for (const std::string_view member : {"creationTimestamp", "generation"}) keep_member(metadata, old, member);
  const bool deleting = old.find("deletionTimestamp") != nullptr;
  if (trusted || deleting) keep_member(metadata, old, "deletionTimestamp");
  for (const std::string_view member : {"uid", "deletionGracePeriodSeconds"}) {
    const Json* sent = metadata.find(member);
    const std::string* text = sent != nullptr ? sent->if_string() : nullptr;
    const bool absent = sent == nullptr || sent->is_null() || (text != nullptr && text->empty());
    if (trusted || absent) keep_member(metadata, old, member);
  }
}

/// What may be changed through the endpoint comes from `object`, everything else from `old`.
void isolate(const Resource& resource, SubresourceId part, Json& object, const Json& old) {
  if (part == SubresourceId::kEphemeralContainers) {
    Json isolated = old;
    if (const Json* containers = object.at({"spec", "ephemeralContainers"})) {
      isolated.make({"spec", "ephemeralContainers"}) = *containers;
    } else {
      isolated.erase({"spec", "ephemeralContainers"});
    }
    for (const std::string_view member : {"resourceVersion", "uid"}) {
      keep_member(isolated["metadata"], object["metadata"], member);
    }
    object = std::move(isolated);
    return;
  }
  if (part == SubresourceId::kStatus && (resource.custom != nullptr || resource.status_keeps_metadata)) {
    Json isolated = old;
    keep_member(isolated, object, "status");
    for (const std::string_view member : {"resourceVersion", "uid", "managedFields"}) {
      keep_member(isolated["metadata"], object["metadata"], member);
    }
    object = std::move(isolated);
    return;
  }
  if (part == SubresourceId::kStatus || part == SubresourceId::kApproval) {
    Json isolated = old;
    keep_member(isolated, object, "status");
    isolated["metadata"] = object["metadata"];
    const Json& old_metadata = *old.find("metadata");
    keep_member(isolated["metadata"], old_metadata, "ownerReferences");
    if (resource.status_keeps_labels) keep_member(isolated["metadata"], old_metadata, "labels");
    object = std::move(isolated);
    return;
  }
  if (resource.status_subresource) keep_member(object, old, "status");
  if (!resource.is("", "Namespace")) return;
  if (part != SubresourceId::kFinalize) keep_member(object, old, "spec");
}

/// Equal references to one owner are one reference.
void join_owners(Json& object, std::vector<std::string>& warnings) {
  const Json* listed = std::as_const(object).at({"metadata", "ownerReferences"});
  if (listed == nullptr || listed->if_array() == nullptr || listed->if_array()->size() < 2) return;
  Json::Array different;
  std::string doubled;
  for (const Json& owner : *listed->if_array()) {
    if (std::ranges::find(different, owner) == different.end()) {
      different.push_back(owner);
    } else {
      doubled += doubled.empty() ? "" : ", ";
      doubled += owner.string_at({"uid"});
    }
  }
  if (doubled.empty()) return;
  object["metadata"]["ownerReferences"] = Json(std::move(different));
  warnings.push_back(".metadata.ownerReferences contains duplicate entries; duplicate UID(s) observed: " + doubled);
}

/// A new object begins with the status that says nothing.
void reset_status(const Resource& resource, Json& object) {
  const Result<api::TypedDocument> blank = api::read_body(type_of(resource), Json::object());
  const Json* status = blank ? blank->object.find("status") : nullptr;
  if (status != nullptr) {
    object["status"] = *status;
  } else {
    object.erase({"status"});
  }
}

Status missing_version(const Resource& resource, std::string_view name) {
  api::FieldErrors errors;
  errors.invalid("metadata.resourceVersion", 0, "must be specified for an update");
  return api::invalid_status({std::string(resource.group), std::string(resource.plural)}, name, errors);
}

bool differs(const Json& object, const Json& old, std::initializer_list<std::string_view> path) {
  const Json* before = old.at(path);
  const Json* after = object.at(path);
  return (before == nullptr) != (after == nullptr) || (before != nullptr && !(*before == *after));
}

/// The spec, and what stands in its place.
constexpr std::array<std::string_view, 6> kCountedMembers{"spec",      "template", "webhooks",
                                                          "endpoints", "ports",    "addressType"};

/// Of a custom kind: of everything but metadata, and the status where that has an endpoint of its own.
bool differs_beyond_metadata(const Resource& resource, Json object, Json old) {
  for (Json* document : {&object, &old}) {
    document->erase({"metadata"});
    document->erase({"apiVersion"});
    if (resource.status_subresource) document->erase({"status"});
  }
  return !(object == old);
}

/// Keeps the warning about what the defaults are about to drop. An earlier one stays: when the object comes back from
/// webhooks, the field is gone.
void note_dropped(const KindHooks& hooks, const Json& object, std::optional<std::string>& dropped) {
  if (hooks.warn_of_dropped == nullptr) return;
  if (auto warning = hooks.warn_of_dropped(object)) dropped = std::move(warning);
}

/// Of a custom kind, what its schema does not know goes as well: lists that are applied whole bring it.
void set_defaults(const Resource& row, Json& object) {
  if (row.custom != nullptr) {
    std::vector<std::string> dropped;
    row.custom->body->trim()(object, dropped);
    return row.custom->set_defaults(object);
  }
  if (row.hooks->set_defaults != nullptr) row.hooks->set_defaults(object);
}

/// One more with every change of these (and, of some kinds, of the annotations or the labels).
void count_generation(const Resource& resource, const Resource& stored, Json& object, const Json& old) {
  const bool changed =
      resource.custom != nullptr
          ? differs_beyond_metadata(resource, at_rest_of(stored, object), old)
          : std::ranges::any_of(kCountedMembers, [&](auto member) { return differs(object, old, {member}); }) ||
                (resource.counts_annotations && differs(object, old, {"metadata", "annotations"})) ||
                (resource.counts_labels && differs(object, old, {"metadata", "labels"}));
  const Json* generation = old.at({"metadata", "generation"});
  const std::int64_t count = generation != nullptr ? generation->if_int64().value_or(0) : 0;
  object["metadata"]["generation"] = count + (changed ? 1 : 0);
}

}  // namespace

api::Status uid_mismatch(const api::GroupResource& of, std::string_view name, std::string_view wanted,
                         std::string_view actual) {
  return api::conflict_status(of, name,
                              "Precondition failed: UID in precondition: " + std::string(wanted) +
                                  ", UID in object meta: " + std::string(actual));
}

StatusResult<void> Writer::check_namespace(const Resource& resource, const std::string& ns, const std::string& name) {
  if (!resource.namespaced()) return {};
  const Resource& namespaces = core_.registry.get("namespaces");
  const ObjectPtr found = core_.cache.of(namespaces).find(ns);
  if (!found) return api::not_found_status(namespaces.group_resource(), ns);
  if (!found->meta.deleting) return {};
  Status status =
      api::forbidden_status(resource.group_resource(), name,
                            "unable to create new content in namespace " + ns + " because it is being terminated");
  status.make_details().causes.push_back(
      {"NamespaceTerminating", "namespace " + ns + " is being terminated", "metadata.namespace"});
  return status;
}

api::FieldWriter field_writer(const Resource& resource, SubresourceId part, std::string manager, WallTime now,
                              bool creates) {
  static constexpr std::string_view kStatusMember[] = {"status"};
  static constexpr std::string_view kSpecMember[] = {"spec"};
  api::FieldWriter writer{std::move(manager), {}, now, {}};
  switch (part) {
    case SubresourceId::kStatus:
      writer.subresource = "status";
      writer.untracked = kSpecMember;
      return writer;
    case SubresourceId::kApproval:
      writer.subresource = "approval";
      writer.untracked = kSpecMember;
      return writer;
    case SubresourceId::kScale:
      writer.subresource = "scale";
      break;
    case SubresourceId::kEphemeralContainers:
      writer.subresource = "ephemeralcontainers";
      break;
    case SubresourceId::kNone:
    case SubresourceId::kBinding:
    case SubresourceId::kEviction:
    case SubresourceId::kLog:
    case SubresourceId::kExec:
    case SubresourceId::kFinalize:
    case SubresourceId::kToken:
    case SubresourceId::kProxy:
      break;
  }
  if (resource.status_subresource && !(creates && resource.keeps_status_on_create)) writer.untracked = kStatusMember;
  return writer;
}

Json Writer::tracked(const Resource& resource, const Json* old, Json object, const WriteContext& context,
                     SubresourceId part) const {
  if (!resource.tracks_managers || context.manager.empty()) return object;
  const api::FieldWriter writer = field_writer(resource, part, context.manager, core_.now.wall, old == nullptr);
  if (old != nullptr && is_repeated_update(object, *old, writer.manager, writer.subresource)) {
    Json managers = *old->at({"metadata", "managedFields"});
    managers.if_array()->front()["time"] = api::format_time(core_.now.wall);
    object["metadata"]["managedFields"] = std::move(managers);
    return object;
  }
  return api::track_update(field_type_of(resource), old, std::move(object), writer);
}

/// What the server alone gives an object when it is made.
void Writer::set_identity(const Resource& resource, const std::string& ns, Json& metadata) {
  for (const std::string_view member : kNotOfClients) metadata.erase({member});
  metadata.erase({"resourceVersion"});
  if (!ns.empty()) metadata["namespace"] = ns;
  metadata["uid"] = new_uid(core_.rng);
  metadata["creationTimestamp"] = api::format_time(core_.now.wall);
  if (resource.counts_generation) metadata["generation"] = 1;
}

void Writer::create(CreateJob job, WriteDone done) {
  auto state = std::make_shared<Create>();
  state->job = std::move(job);
  state->done = std::move(done);
  const CreateJob& asked = state->job;
  if (asked.resource->hooks->reserves != nullptr && core_.store.is_shared()) state->again = asked;
  state->object = std::move(state->job.object);

  const std::string name(state->object.string_at({"metadata", "name"}));
  if (const std::string_view version = state->object.string_at({"metadata", "resourceVersion"});
      !version.empty() && !asked.context.dry_run) {
    return state->done(
        make_error(ErrorCode::kBadRequest, "resourceVersion should not be set on objects to be created"));
  }
  const Resource& resource = core_.cache.of(*asked.resource).resource();
  if (const auto open = check_namespace(resource, asked.ns, name); !open) return state->done(open.error());
  if (const auto admitted = prepare_create(*state); !admitted) return state->done(admitted.error());
  if (webhooks_ != nullptr) {
    state->admission =
        webhooks_->begin(asked.context.asked, webhooks::Operation::kCreate, asked.ns, name, asked.context.dry_run);
    if (state->admission && state->admission->mutates()) return mutate_create(state);
  }
  validate_create(state);
}

StatusResult<void> Writer::prepare_create(Create& state) {
  const Resource& row = *state.job.resource;
  const Resource& resource = core_.cache.of(row).resource();
  Json& object = state.object;
  state.prefix.clear();
  state.hold.reset();
  set_identity(resource, state.job.ns, object["metadata"]);
  if (row.is_view()) object = row.to_stored(object);
  join_owners(object, state.warnings);
  const KindHooks& hooks = *row.hooks;
  note_dropped(hooks, object, state.dropped);
  set_defaults(row, object);
  // Now, because what the server adds from here on belongs to nobody.
  if (!state.job.applied && !std::exchange(state.tracked, true)) {
    object = tracked(resource, nullptr, std::move(object), state.job.context, SubresourceId::kNone);
  }
  if (object.string_at({"metadata", "name"}).empty()) {
    state.prefix = object.string_at({"metadata", "generateName"});
    if (!state.prefix.empty()) object["metadata"]["name"] = generated_name(state.prefix, core_.rng);
  }
  if (row.status_subresource && !resource.keeps_status_on_create) reset_status(resource, object);
  if (hooks.prepare_create != nullptr) hooks.prepare_create(object);
  if (hooks.admit_create != nullptr) {
    const AdmissionContext context{cluster_,       state.job.context.user, core_.now.wall,
                                   state.warnings, core_.admission,        state.job.context.dry_run};
    SPILLWAY_TRY_VOID(hooks.admit_create(object, context));
  }
  if (!state.job.context.dry_run) state.hold = reservations_.hold(resource, object, nullptr);
  for (const AdmissionCheck* check : checks_) {
    SPILLWAY_TRY_VOID(check->check_create(state.job.context.user, resource, object));
  }
  return {};
}

StatusResult<void> Writer::check_create(Create& state) {
  const Resource& row = *state.job.resource;
  const Resource& resource = core_.cache.of(row).resource();
  const KindHooks& hooks = *row.hooks;
  const Json& object = state.object;
  api::FieldErrors errors;
  validate_metadata(row, object, errors);
  for (const AdmissionCheck* check : checks_) check->validate_create(resource, object, errors);
  if (hooks.validate_create != nullptr) hooks.validate_create(object, errors);
  if (row.custom != nullptr) row.custom->validate(object, nullptr, errors);
  if (errors.empty() && row.metadata.create == 0) validate_any_metadata(object, errors);
  if (!errors.empty()) {
    return api::invalid_status(resource.group_kind(), object.string_at({"metadata", "name"}), errors);
  }
  for (const AdmissionCheck* check : checks_) {
    SPILLWAY_TRY_VOID(check->confirm(
        {.user = state.job.context.user, .resource = resource, .object = object, .warnings = state.warnings}));
  }
  if (hooks.confirm_create != nullptr) {
    const AdmissionContext context{cluster_,       state.job.context.user, core_.now.wall,
                                   state.warnings, core_.admission,        state.job.context.dry_run};
    SPILLWAY_TRY_VOID(hooks.confirm_create(object, context));
  }
  return {};
}

void Writer::finish_create(const CreatePtr& state) {
  const Resource& row = *state->job.resource;
  if (row.hooks->name_create != nullptr) row.hooks->name_create(state->object);
  if (state->dropped) state->warnings.push_back(*state->dropped);
  if (tells_of_unattended_ && !row.unattended.empty()) state->warnings.emplace_back(row.unattended);
  try_create(state);
}

void Writer::update(UpdateJob job, WriteDone done) {
  auto state = std::make_shared<Update>();
  state->store_key = job.resource->storage + object_key(job.ns, job.name);
  state->job = std::move(job);
  state->done = std::move(done);
  const auto [queue, first] = updates_.try_emplace(state->store_key);
  queue->second.push_back(state);
  state->queued = true;
  if (first) begin_update(state);
}

void Writer::begin_update(const UpdatePtr& state) {
  try_update(state, core_.cache.of(*state->job.resource).find(object_key(state->job.ns, state->job.name)));
}

void Writer::leave_queue(const UpdatePtr& state) {
  if (!std::exchange(state->queued, false)) return;
  updates_.find(state->store_key)->second.pop_front();
  pass_turn(state->store_key);
}

bool Writer::passes_renewal(const api::UserInfo& user, const Resource& resource, const StoredObject& object) const {
  if (webhooks_ != nullptr && webhooks_->meets(resource, nullptr, webhooks::Operation::kUpdate)) return false;
  return std::ranges::all_of(checks_, [&](const AdmissionCheck* check) {
    return check->passes_renewal(user, resource, object.ns, object.name);
  });
}

bool Writer::is_updating(const Resource& resource, const StoredObject& object) const {
  return updates_.contains(resource.storage + object.key);
}

void Writer::renew(Renewal renewal, Committer::Done done) {
  std::string store_key = renewal.resource.storage + renewal.current->key;
  updates_.try_emplace(store_key);
  committer_.renew(std::move(renewal), [this, store_key = std::move(store_key),
                                        done = std::move(done)](StatusResult<Commit> result) mutable {
    pass_turn(store_key);
    done(std::move(result));
    begin_next();
  });
}

void Writer::pass_turn(const std::string& store_key) {
  const auto queue = updates_.find(store_key);
  if (queue->second.empty()) {
    updates_.erase(queue);
  } else {
    next_updates_.push_back(queue->second.front());
  }
}

void Writer::begin_next() {
  if (beginning_) return;
  beginning_ = true;
  while (!next_updates_.empty()) {
    const UpdatePtr next = std::move(next_updates_.front());
    next_updates_.pop_front();
    begin_update(next);
  }
  beginning_ = false;
}

void Writer::finish_update(const UpdatePtr& state, StatusResult<Written> result) {
  leave_queue(state);
  state->done(std::move(result));
  begin_next();
}

/// The object that is written is the one that was named: name, namespace, uid and version. Sets those that it left
/// open.
StatusResult<void> Writer::address(const UpdateJob& job, const Resource& resource, const ObjectPtr& current,
                                   Json& metadata) {
  if (metadata.string_at({"name"}) != job.name) {
    return make_error(ErrorCode::kBadRequest, "the name of the object ({}) does not match the name on the URL ({})",
                      metadata.string_at({"name"}), job.name);
  }
  if (!resource.namespaced()) metadata.erase({"namespace"});
  if (const std::string_view ns = metadata.string_at({"namespace"}); !ns.empty() && ns != job.ns) {
    return make_error(ErrorCode::kBadRequest,
                      "the namespace of the object ({}) does not match the namespace on the URL ({})", ns, job.ns);
  }
  if (!job.ns.empty()) metadata["namespace"] = job.ns;
  if (!job.uid.empty() && job.uid != current->meta.uid) {
    return uid_mismatch(resource.group_resource(), job.name, job.uid, current->meta.uid);
  }
  const std::string_view version = metadata.string_at({"resourceVersion"});
  const std::string current_version = std::to_string(current->revision.number());
  const bool any_version = version.empty() || version == "0";
  if (any_version && resource.requires_version && !job.trusted) return missing_version(resource, job.name);
  if (!any_version && version != current_version) {
    return api::stale_version_status(resource.group_resource(), job.name);
  }
  metadata["resourceVersion"] = current_version;
  return {};
}

/// What built-in admission says of the change, and makes of the object.
StatusResult<void> Writer::admit_update(Update& state, const Resource& resource, Json& object, const Json& old) {
  const UpdateJob& job = state.job;
  const KindHooks& hooks = *job.resource->hooks;
  if (hooks.admit_update != nullptr) {
    const AdmissionContext context{cluster_,       job.context.user, core_.now.wall,
                                   state.warnings, core_.admission,  job.context.dry_run};
    SPILLWAY_TRY_VOID(hooks.admit_update(object, old, endpoint_of(job.part), context));
  }
  for (const AdmissionCheck* check : checks_) {
    SPILLWAY_TRY_VOID(check->check_update(job.context.user, resource, job.part, object, old));
  }
  return {};
}

/// Whether the object is valid, and nothing else stands against it.
StatusResult<void> Writer::check_update(Update& state, const Resource& resource, const Json& object, const Json& old) {
  const UpdateJob& job = state.job;
  const KindHooks& hooks = *job.resource->hooks;
  const Endpoint endpoint = endpoint_of(job.part);
  api::FieldErrors errors;
  const bool main = endpoint == Endpoint::kMain || endpoint == Endpoint::kEphemeralContainers;
  validate_metadata_update(*job.resource, main ? UpdatedPart::kMain : UpdatedPart::kStatus, object, old, errors);
  for (const AdmissionCheck* check : checks_) check->validate_update(resource, object, old, errors);
  if (job.resource->custom != nullptr) {
    job.resource->custom->validate(object, &old, errors);
  } else if (hooks.validate_update != nullptr) {
    hooks.validate_update(object, old, endpoint, errors);
  } else if (hooks.validate_create != nullptr && endpoint == Endpoint::kMain) {
    hooks.validate_create(object, errors);
  }
  if (!errors.empty()) return api::invalid_status(resource.group_kind(), job.name, errors);
  for (const AdmissionCheck* check : checks_) {
    SPILLWAY_TRY_VOID(check->confirm({.user = job.context.user,
                                      .resource = resource,
                                      .part = job.part,
                                      .object = object,
                                      .old = &old,
                                      .warnings = state.warnings}));
  }
  return {};
}

StatusResult<Json> Writer::wanted_object(const Update& state, const Json& old) const {
  const UpdateJob& job = state.job;
  if (state.mutated && job.form) return job.form->take(old, *state.mutated, job.name);
  if (state.mutated) return *state.mutated;
  return job.change(job.resource->from_stored(old));
}

StatusResult<Json> Writer::prepare_update(Update& state, const Json& old) {
  const UpdateJob& job = state.job;
  const Resource& resource = core_.cache.of(*job.resource).resource();
  state.hold.reset();
  StatusResult<Json> wanted = wanted_object(state, old);
  if (!wanted) return wanted.error();
  Json object = job.resource->to_stored(*wanted);

  Json& metadata = object["metadata"];
  if (const auto addressed = address(job, resource, state.current, metadata); !addressed) return addressed.error();
  keep_server_members(metadata, *old.find("metadata"), job.trusted);

  const KindHooks& hooks = *job.resource->hooks;
  const Endpoint endpoint = endpoint_of(job.part);
  if (!job.trusted) {
    join_owners(object, state.warnings);
    if (endpoint == Endpoint::kMain) note_dropped(hooks, object, state.dropped);
    set_defaults(*job.resource, object);
    isolate(job.resource->custom != nullptr ? *job.resource : resource, job.part, object, old);
    if (hooks.prepare_update != nullptr) hooks.prepare_update(object, old, endpoint);
  }
  if (resource.counts_generation && endpoint == Endpoint::kMain) {
    count_generation(job.resource->custom != nullptr ? *job.resource : resource, resource, object, old);
  }
  if (job.trusted) return object;
  SPILLWAY_TRY_VOID(admit_update(state, resource, object, old));
  if (!job.context.dry_run) state.hold = reservations_.hold(resource, object, &old);
  return object;
}

void Writer::try_update(const UpdatePtr& state, const ObjectPtr& current) {
  const UpdateJob& job = state->job;
  const Resource& resource = core_.cache.of(*job.resource).resource();
  if (!current) {
    if (!job.uid.empty()) return finish_update(state, uid_mismatch(resource.group_resource(), job.name, job.uid, ""));
    if (!job.create) return finish_update(state, api::not_found_status(resource.group_resource(), job.name));
    StatusResult<Json> wanted = job.create();
    if (!wanted) return finish_update(state, wanted.error());
    return create({job.resource, job.ns, *std::move(wanted), job.applied, job.context},
                  [this, state](StatusResult<Written> result) { finish_update(state, std::move(result)); });
  }
  state->current = current;
  state->mutated.reset();
  if (webhooks_ != nullptr && !job.trusted) {
    state->admission =
        webhooks_->begin(job.context.asked, webhooks::Operation::kUpdate, job.ns, job.name, job.context.dry_run);
  }
  advance_update(state);
}

void Writer::advance_update(const UpdatePtr& state) {
  state->warnings.clear();
  const api::DocumentPtr old = state->current->shared_document();
  StatusResult<Json> object = prepare_update(*state, *old);
  if (!object) return finish_update(state, object.error());
  if (state->admission && state->admission->mutates()) return mutate_update(state, *object, old);
  validate_update(state, *std::move(object), old);
}

}  // namespace spillway::apiserver
