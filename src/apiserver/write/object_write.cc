#include "apiserver/write/object_write.h"

#include "apiserver/resource/custom_kind.h"
#include "apiserver/resource/metadata_rules.h"
#include "apiserver/resource/object_change.h"
#include "apiserver/write/managed_fields.h"
#include "apiserver/write/server_members.h"
#include "apiserver/write/shown_object.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;

// clang-format off
// A create, step by step. From kFreeName on each wait is followed by a return there, because other writes are committed
// meanwhile.
constexpr auto kStepsOfCreate = [] {
  using enum ObjectWrite::Step;
  return std::array{
      kNamespace,
      kIdentity,
      kDefaults,
      kManagedFields,
      kGeneratedName,
      kIsolation,
      kAdmission,
      kMutatingWebhooks,
      kSchema,
      kValidation,
      kValidatingWebhooks,
      kStoredForm,
      kFinalName,
      kFreeName,
      kReservation,
      kQuota,
      kCommit,
  };
}();

/// An update, step by step. It is charged before it reserves: the charge counts for all its attempts, a reservation for
/// one.
constexpr auto kStepsOfUpdate = [] {
  using enum ObjectWrite::Step;
  return std::array{
      kLoad,
      kTarget,
      kCurrentForm,
      kIdentity,
      kDefaults,
      kIsolation,
      kAdmission,
      kMutatingWebhooks,
      kSchema,
      kValidation,
      kValidatingWebhooks,
      kManagedFields,
      kStoredForm,
      kQuota,
      kReservation,
      kCommit,
  };
}();
// clang-format on

/// Names generated for one create; then it is refused (409). As upstream: of the 27^5 endings of a name, eight in a row
/// are taken only if the names are nearly used up.
constexpr int kCreateAttempts = 8;
/// Races that one update loses; then the client gets a conflict (409). Updates of one server take turns, so it races
/// deletions and other servers only. An update that loses 64 of them would lose more.
constexpr int kUpdateAttempts = 64;
/// The same limit where webhooks are called for each attempt anew: calls are slow and costly.
constexpr int kAskedUpdateAttempts = 5;
/// Choices of addresses or ports that other servers had made as well; then the write fails (500).
constexpr int kChoices = 64;

/// True for kinds whose validation clients can make long.
bool is_validated_in_slices(const Resource& row) {
  return row.custom != nullptr || row.hooks->compiles_expressions;
}

/// Validates an object by the rules of its kind: by the schema of a custom kind, by the hooks of another.
/// `old` is null for a new object.
void validate_by_kind(const Resource& row, const Json& object, const Json* old, Endpoint endpoint,
                      api::FieldErrors& errors) {
  if (row.custom != nullptr) return row.custom->validate(object, old, errors);
  const KindHooks& hooks = *row.hooks;
  if (old != nullptr && hooks.validate_update != nullptr) return hooks.validate_update(object, *old, endpoint, errors);
  if (endpoint == Endpoint::kMain && hooks.validate_create != nullptr) hooks.validate_create(object, errors);
}

/// 404: there is no such namespace. 403: it is being deleted.
StatusResult<void> check_namespace_takes(const Core& core, const Resource& resource, const std::string& ns,
                                         std::string_view name) {
  if (!resource.namespaced()) return {};
  const Resource& namespaces = core.registry.get("namespaces");
  const ObjectPtr found = core.cache.of(namespaces).find(ns);
  if (!found) return api::not_found_status(namespaces.group_resource(), ns);
  if (!found->meta.deleting) return {};
  Status status =
      api::forbidden_status(resource.group_resource(), name,
                            "unable to create new content in namespace " + ns + " because it is being terminated");
  status.make_details().causes.push_back(
      {"NamespaceTerminating", "namespace " + ns + " is being terminated", "metadata.namespace"});
  return status;
}

/// Fills in what the client left out. An object of a custom kind also loses fields unknown to its schema, which atomic
/// lists of a patch may contain.
void fill_in_defaults(const Resource& row, Json& object) {
  if (row.custom != nullptr) {
    std::vector<std::string> dropped;
    row.custom->body->trim()(object, dropped);
    return row.custom->set_defaults(object);
  }
  if (row.hooks->set_defaults != nullptr) row.hooks->set_defaults(object);
}

StatusResult<Json> document_of(const StatusResult<std::vector<ObjectPtr>>& converted) {
  if (!converted) return converted.error();
  return converted->front()->document();
}

/// The row in whose form managers are recorded: that of the request if a webhook converts the object afterwards.
const Resource& tracked_row(const Resource& row, const Resource& stored) {
  return has_webhook(row) ? row : stored;
}

/// `there`: the object that has the name; null: unknown.
Status already_exists(const Resource& resource, const std::string& name, const ObjectPtr& there) {
  Status status = api::already_exists_status(resource.group_resource(), name);
  if (there && there->meta.deleting) status.message = "object is being deleted: " + status.message;
  return status;
}

/// Null: no webhook and no policy matches the object of that name.
AdmissionPtr begin_admission(const WriteTools& tools, const UpdateJob& job, webhooks::Operation operation,
                             const std::string& name) {
  if (tools.webhooks == nullptr) return nullptr;
  return tools.webhooks->begin(job.context.asked, operation, job.ns, name, job.context.dry_run);
}

Status lost_choices() {
  return make_error(ErrorCode::kInternalError, "other servers allocated the chosen values {} times in a row", kChoices);
}

}  // namespace

ObjectWrite::ObjectWrite(WriteTools& tools, CreateJob job, WriteDone done)
    : tools_(tools), row_(*job.resource), done_(std::move(done)), steps_(kStepsOfCreate) {
  job_.resource = job.resource;
  job_.ns = std::move(job.ns);
  job_.applied = job.applied;
  job_.context = std::move(job.context);
  begin_create(std::move(job.object));
}

ObjectWrite::ObjectWrite(WriteTools& tools, UpdateJob job, std::string store_key, WriteDone done)
    : tools_(tools),
      row_(*job.resource),
      job_(std::move(job)),
      done_(std::move(done)),
      store_key_(std::move(store_key)),
      has_turn_(true),
      steps_(kStepsOfUpdate) {}

/// Begins a create from its first step: at first, and again when another server had what was chosen for the object.
void ObjectWrite::begin_create(Json object) {
  creates_ = true;
  job_.part = SubresourceId::kNone;
  job_.trusted = false;
  job_.form.reset();
  object_ = std::move(object);
  sent_.reset();
  if (row_.hooks->reserves != nullptr && tools_.core.store.is_shared()) sent_ = object_;
  warnings_.clear();
  attempts_ = 0;
  deletes_ = false;
  has_managers_ = false;
  is_charged_ = false;
  pledge_.reset();
  steps_ = StepList<Step>(kStepsOfCreate);
}

void ObjectWrite::advance() {
  Next next = Next::kStep;
  while (next == Next::kStep) next = run(steps_.take());
}

Next ObjectWrite::run(Step step) {
  switch (step) {
    case Step::kNamespace:
      return proceed_if(check_namespace());
    case Step::kLoad:
      return load();
    case Step::kTarget:
      return check_target();
    case Step::kCurrentForm:
      return convert_current();
    case Step::kIdentity:
      return proceed_if(creates_ ? identify_new() : identify_update());
    case Step::kDefaults:
      return set_defaults();
    case Step::kManagedFields:
      return creates_ ? record_managers_of_new() : record_managers_of_update();
    case Step::kGeneratedName:
      return generate_name();
    case Step::kIsolation:
      return creates_ ? isolate_new() : isolate_update();
    case Step::kAdmission:
      return proceed_if(creates_ ? admit_new() : admit_update());
    case Step::kMutatingWebhooks:
      return ask_mutating_webhooks();
    case Step::kSchema:
      return check_in_slices();
    case Step::kValidation:
      return proceed_if(creates_ ? validate_new() : validate_update());
    case Step::kValidatingWebhooks:
      return ask_validating_webhooks();
    case Step::kStoredForm:
      return convert_to_stored();
    case Step::kFinalName:
      return finish_name();
    case Step::kFreeName:
      return check_name_is_free();
    case Step::kReservation:
      return reserve();
    case Step::kQuota:
      return charge_quotas();
    case Step::kCommit:
      return commit();
  }
  return Next::kEnd;
}

/// Continues after the answer that a step waited for.
void ObjectWrite::resume(Next next) {
  if (next == Next::kStep) advance();
}

/// An error ends the write.
Next ObjectWrite::proceed_if(const StatusResult<void>& result) {
  return result ? Next::kStep : end(result.error());
}

Next ObjectWrite::end(StatusResult<Written> result) {
  release_turn();
  done_(std::move(result));
  if (!store_key_.empty()) tools_.turns.begin_next();
  return Next::kEnd;
}

void ObjectWrite::release_turn() {
  if (std::exchange(has_turn_, false)) tools_.turns.release(store_key_);
}

AdmissionContext ObjectWrite::admission_context() {
  const Core& core = tools_.core;
  return {tools_.cluster, job_.context.user, core.now.wall, warnings_, core.admission, job_.context.dry_run};
}

StatusResult<void> ObjectWrite::check_namespace() {
  const std::string name(object_.string_at({"metadata", "name"}));
  const bool has_version = !object_.string_at({"metadata", "resourceVersion"}).empty();
  if (has_version && !job_.context.dry_run) {
    return make_error(ErrorCode::kBadRequest, "resourceVersion should not be set on objects to be created");
  }
  SPILLWAY_TRY_VOID(check_namespace_takes(tools_.core, stored(), job_.ns, name));
  admission_ = begin_admission(tools_, job_, webhooks::Operation::kCreate, name);
  return {};
}

Next ObjectWrite::load() {
  current_ = tools_.core.cache.of(row_).find(object_key(job_.ns, job_.name));
  return Next::kStep;
}

Next ObjectWrite::check_target() {
  const Resource& resource = stored();
  if (!current_) {
    if (!job_.create) return end(api::not_found_status(resource.group_resource(), job_.name));
    if (!job_.uid.empty()) return end(uid_mismatch(resource.group_resource(), job_.name, job_.uid, ""));
    StatusResult<Json> wanted = job_.create();
    if (!wanted) return end(wanted.error());
    begin_create(*std::move(wanted));
    return Next::kStep;
  }
  old_ = current_->shared_document();
  mutated_.reset();
  if (!job_.trusted) admission_ = begin_admission(tools_, job_, webhooks::Operation::kUpdate, job_.name);
  return Next::kStep;
}

/// Changes of the server itself are made in the version that the object has in the store.
Next ObjectWrite::convert_current() {
  if (job_.trusted || !needs_webhook(row_, *current_)) return Next::kStep;
  release_turn();
  tools_.core.converter->convert(row_, {current_}, ObjectConverter::Of::kObject,
                                 [self = shared_from_this()](const StatusResult<std::vector<ObjectPtr>>& converted) {
                                   self->resume(self->on_converted(Step::kCurrentForm, document_of(converted)));
                                 });
  tools_.turns.begin_next();
  return Next::kWait;
}

Next ObjectWrite::convert_to_stored() {
  if (job_.trusted || !has_webhook(row_)) return Next::kStep;
  if (!creates_) release_turn();
  tools_.core.converter->convert(stored(), std::move(object_),
                                 [self = shared_from_this()](StatusResult<Json> converted) {
                                   self->resume(self->on_converted(Step::kStoredForm, std::move(converted)));
                                 });
  if (!creates_) tools_.turns.begin_next();
  return Next::kWait;
}

Next ObjectWrite::on_converted(Step step, StatusResult<Json> converted) {
  if (!converted) return end(converted.error());
  if (step == Step::kCurrentForm) {
    old_ = std::make_shared<const Json>(*std::move(converted));
  } else {
    object_ = *std::move(converted);
  }
  return Next::kStep;
}

StatusResult<void> ObjectWrite::identify_new() {
  warnings_.clear();
  hold_.reset();
  name_prefix_.clear();
  Core& core = tools_.core;
  give_identity(stored(), job_.ns, new_uid(core.rng), core.now.wall, object_["metadata"]);
  if (row_.is_view()) object_ = row_.to_stored(object_);
  return {};
}

StatusResult<void> ObjectWrite::identify_update() {
  warnings_.clear();
  hold_.reset();
  StatusResult<Json> wanted = !mutated_   ? job_.change(row_.from_stored(*old_))
                              : job_.form ? job_.form->take(*old_, *mutated_, job_.name)
                                          : StatusResult<Json>(*mutated_);
  if (!wanted) return wanted.error();
  object_ = row_.to_stored(*wanted);
  Json& metadata = object_["metadata"];
  SPILLWAY_TRY_VOID(check_address(job_, stored(), *current_, metadata));
  keep_server_members(metadata, *old_->find("metadata"), job_.trusted ? Author::kServer : Author::kClient);
  return {};
}

Next ObjectWrite::set_defaults() {
  if (job_.trusted) return Next::kStep;
  join_owners(object_, warnings_);
  fill_in_defaults(row_, object_);
  return Next::kStep;
}

/// Once, before the server adds anything: what it adds has no manager.
Next ObjectWrite::record_managers_of_new() {
  if (job_.applied || std::exchange(has_managers_, true)) return Next::kStep;
  const WallTime now = tools_.core.now.wall;
  object_ =
      with_managers(tracked_row(row_, stored()), SubresourceId::kNone, job_.context, now, nullptr, std::move(object_));
  return Next::kStep;
}

/// An update that changes nothing, or nothing but the times of managers, ends here and is not stored.
Next ObjectWrite::record_managers_of_update() {
  const Resource& resource = stored();
  deletes_ = completes_deletion(object_, *old_);
  object_ = at_rest_of(resource, std::move(object_));
  if (deletes_) return Next::kStep;
  const auto end_unchanged = [this] { return end(Written{current_, false, false, std::move(warnings_)}); };
  if (object_ == *old_) return end_unchanged();
  if (!job_.applied) {
    const WallTime now = tools_.core.now.wall;
    object_ = with_managers(tracked_row(row_, resource), job_.part, job_.context, now, old_.get(), std::move(object_));
  }
  return same_but_manager_times(object_, *old_) ? end_unchanged() : Next::kStep;
}

Next ObjectWrite::generate_name() {
  if (!object_.string_at({"metadata", "name"}).empty()) return Next::kStep;
  name_prefix_ = object_.string_at({"metadata", "generateName"});
  if (!name_prefix_.empty()) object_["metadata"]["name"] = generated_name(name_prefix_, tools_.core.rng);
  return Next::kStep;
}

namespace {

/// Sets the generation after an update through `part`. A binding changes the spec of a pod and is not counted.
void count_changes(const Resource& described, const Resource& stored, SubresourceId part, Json& object,
                   const Json& old) {
  const Endpoint endpoint = endpoint_of(part);
  if (!stored.counts_generation || !changes_spec(endpoint) || part == SubresourceId::kBinding) return;
  count_generation(described, stored, object, old);
}

}  // namespace

Next ObjectWrite::isolate_new() {
  const Resource& resource = stored();
  if (row_.status_subresource && !resource.keeps_status_on_create) reset_status(resource, object_);
  if (row_.hooks->prepare_create != nullptr) row_.hooks->prepare_create(object_);
  return Next::kStep;
}

Next ObjectWrite::isolate_update() {
  const Resource& resource = stored();
  const Resource& described = row_.custom != nullptr ? row_ : resource;
  const Endpoint endpoint = endpoint_of(job_.part);
  if (!job_.trusted) {
    isolate(described, job_.part, object_, *old_);
    if (row_.hooks->prepare_update != nullptr) row_.hooks->prepare_update(object_, *old_, endpoint);
  }
  count_changes(described, resource, job_.part, object_, *old_);
  return Next::kStep;
}

StatusResult<void> ObjectWrite::admit_new() {
  const Resource& resource = stored();
  const KindHooks& hooks = *row_.hooks;
  if (hooks.admit_create != nullptr) SPILLWAY_TRY_VOID(hooks.admit_create(object_, admission_context()));
  for (const AdmissionCheck* check : tools_.checks) {
    SPILLWAY_TRY_VOID(check->check_create(job_.context.user, resource, object_));
  }
  if (!job_.context.dry_run) hold_ = tools_.reservations.hold(resource, object_, nullptr);
  return {};
}

StatusResult<void> ObjectWrite::admit_update() {
  if (job_.trusted) return {};
  const Resource& resource = stored();
  const KindHooks& hooks = *row_.hooks;
  if (hooks.admit_update != nullptr) {
    SPILLWAY_TRY_VOID(hooks.admit_update(object_, *old_, endpoint_of(job_.part), admission_context()));
    // Members that the client left out and admission has filled in again are no change.
    count_changes(row_.custom != nullptr ? row_ : resource, resource, job_.part, object_, *old_);
  }
  for (const AdmissionCheck* check : tools_.checks) {
    SPILLWAY_TRY_VOID(check->check_update(job_.context.user, resource, job_.part, object_, *old_));
  }
  if (!job_.context.dry_run) hold_ = tools_.reservations.hold(resource, object_, old_.get());
  return {};
}

/// While webhooks are called about an update, other writes of the object may be committed: the update names the version
/// that it replaces, and is repeated if that is not the last one any more. A create keeps the turn of an update that it
/// belongs to, for the next update would create the object as well.
Next ObjectWrite::ask_mutating_webhooks() {
  if (!admission_ || !admission_->has_round()) return Next::kStep;
  if (!creates_) release_turn();
  shown_ = creates_ ? shown_new(row_, object_, !name_prefix_.empty()) : shown(row_, job_.form, object_);
  admission_->mutate(shown_, creates_ ? Json() : shown(row_, job_.form, *old_),
                     [self = shared_from_this()](StatusResult<std::optional<Json>> mutated) {
                       self->resume(self->on_mutated(std::move(mutated)));
                     });
  if (!creates_) tools_.turns.begin_next();
  return Next::kWait;
}

/// A changed object passes the steps from kIdentity on again.
Next ObjectWrite::on_mutated(StatusResult<std::optional<Json>> mutated) {
  if (!mutated) return end(mutated.error());
  if (*mutated) {
    Json object = **std::move(mutated);
    if (const auto same = check_same_object(object, shown_, !name_prefix_.empty()); !same) {
      return end(same.error());
    }
    if (creates_ || job_.applied) keep_managers(object, shown_);
    if (creates_) {
      object_ = std::move(object);
    } else {
      mutated_ = std::move(object);
    }
    steps_.go_to(Step::kIdentity);
  }
  return Next::kStep;
}

/// Clients can make this validation long. An update keeps its turn meanwhile: the next one begins with the outcome of
/// this one.
Next ObjectWrite::check_in_slices() {
  slice_errors_ = {};
  if (!is_validated_in_slices(row_) || job_.trusted) return Next::kStep;
  tools_.core.in_slices(
      [this] {
        const Endpoint endpoint = creates_ ? Endpoint::kMain : endpoint_of(job_.part);
        validate_by_kind(row_, object_, creates_ ? nullptr : old_.get(), endpoint, slice_errors_);
      },
      [self = shared_from_this()] { self->advance(); });
  return Next::kWait;
}

StatusResult<void> ObjectWrite::validate_new() {
  const Resource& resource = stored();
  const KindHooks& hooks = *row_.hooks;
  api::FieldErrors errors;
  validate_metadata(row_, object_, errors);
  for (const AdmissionCheck* check : tools_.checks) check->validate_create(resource, object_, errors);
  if (is_validated_in_slices(row_)) {
    errors.add(std::exchange(slice_errors_, {}));
  } else {
    validate_by_kind(row_, object_, nullptr, Endpoint::kMain, errors);
  }
  if (errors.empty() && row_.metadata.create == 0) validate_any_metadata(object_, errors);
  if (!errors.empty()) {
    return api::invalid_status(resource.group_kind(), object_.string_at({"metadata", "name"}), errors);
  }
  for (const AdmissionCheck* check : tools_.checks) {
    SPILLWAY_TRY_VOID(
        check->confirm({.user = job_.context.user, .resource = resource, .object = object_, .warnings = warnings_}));
  }
  if (hooks.confirm_create != nullptr) SPILLWAY_TRY_VOID(hooks.confirm_create(object_, admission_context()));
  return {};
}

StatusResult<void> ObjectWrite::validate_update() {
  if (job_.trusted) return {};
  const Resource& resource = stored();
  const KindHooks& hooks = *row_.hooks;
  const Endpoint endpoint = endpoint_of(job_.part);
  api::FieldErrors errors;
  const UpdatedPart part = changes_spec(endpoint) ? UpdatedPart::kMain : UpdatedPart::kStatus;
  validate_metadata_update(row_, part, object_, *old_, errors);
  for (const AdmissionCheck* check : tools_.checks) check->validate_update(resource, object_, *old_, errors);
  if (is_validated_in_slices(row_)) {
    errors.add(std::exchange(slice_errors_, {}));
  } else {
    validate_by_kind(row_, object_, old_.get(), endpoint, errors);
  }
  if (!errors.empty()) return api::invalid_status(resource.group_kind(), job_.name, errors);
  for (const AdmissionCheck* check : tools_.checks) {
    SPILLWAY_TRY_VOID(check->confirm({.user = job_.context.user,
                                      .resource = resource,
                                      .part = job_.part,
                                      .object = object_,
                                      .old = old_.get(),
                                      .warnings = warnings_}));
  }
  if (hooks.confirm_update != nullptr) {
    SPILLWAY_TRY_VOID(hooks.confirm_update(object_, *old_, endpoint, admission_context()));
  }
  return {};
}

Next ObjectWrite::ask_validating_webhooks() {
  if (!admission_ || !admission_->validates()) return Next::kStep;
  if (!creates_) release_turn();
  admission_->validate(
      shown(row_, job_.form, object_), creates_ ? Json() : shown(row_, job_.form, *old_),
      [self = shared_from_this()](const StatusResult<void>& validated) { self->resume(self->proceed_if(validated)); });
  if (!creates_) tools_.turns.begin_next();
  return Next::kWait;
}

Next ObjectWrite::finish_name() {
  if (row_.hooks->name_create != nullptr) row_.hooks->name_create(object_);
  if (tools_.warns_of_unattended && !row_.unattended.empty()) warnings_.emplace_back(row_.unattended);
  return Next::kStep;
}

Next ObjectWrite::check_name_is_free() {
  const Resource& resource = stored();
  const ResourceCache& objects = tools_.core.cache.of(resource);
  job_.name = object_.string_at({"metadata", "name"});
  // The create arrived as a patch, or waited while its kind was being deleted: objects stored now would never be
  // removed.
  if (resource.custom != nullptr && (objects.is_detached() || !resource.verbs.has(Verb::kCreate))) {
    tools_.reservations.give_back(hold_);
    return end(api::method_not_allowed_status());
  }
  const ObjectPtr there = objects.find(object_key(job_.ns, job_.name));
  const bool is_fixed = job_.context.dry_run || name_prefix_.empty();
  return there && is_fixed ? end(already_exists(resource, job_.name, there)) : Next::kStep;
}

Next ObjectWrite::reserve() {
  if (job_.context.dry_run || tools_.reservations.is_secured(hold_)) return Next::kStep;
  tools_.reservations.secure(
      hold_, [self = shared_from_this()](const StatusResult<bool>& ours) { self->resume(self->on_reserved(ours)); });
  return Next::kWait;
}

/// Another server holds the chosen value: the write chooses again, among those that are left.
Next ObjectWrite::on_reserved(const StatusResult<bool>& ours) {
  if (!ours) return end(ours.error());
  if (*ours) {
    if (creates_) steps_.go_to(Step::kFreeName);
    return Next::kStep;
  }
  tools_.reservations.give_back(hold_);
  hold_.reset();
  if (++lost_choices_ == kChoices) return end(lost_choices());
  if (creates_) {
    begin_create(*std::exchange(sent_, std::nullopt));
  } else {
    steps_.go_to(Step::kLoad);
  }
  return Next::kStep;
}

/// Only the main endpoint and that of resizes can make an object use more than before.
Next ObjectWrite::charge_quotas() {
  const bool grows_here = job_.part == SubresourceId::kNone || job_.part == SubresourceId::kResize;
  const bool may_grow = creates_ ? !is_charged_ : grows_here && !job_.trusted && !deletes_;
  if (!may_grow) return Next::kStep;
  tools_.quotas.charge({.resource = stored(),
                        .part = job_.part,
                        .object = object_,
                        .old = creates_ ? nullptr : old_.get(),
                        .dry_run = job_.context.dry_run,
                        .pledged = creates_ ? nullptr : pledge_},
                       [self = shared_from_this()](StatusResult<QuotaLedger::PledgePtr> pledge) {
                         self->resume(self->on_charged(std::move(pledge)));
                       });
  return Next::kWait;
}

Next ObjectWrite::on_charged(StatusResult<QuotaLedger::PledgePtr> pledge) {
  if (!pledge) {
    tools_.reservations.give_back(hold_);
    return end(pledge.error());
  }
  pledge_ = *std::move(pledge);
  is_charged_ = true;
  if (creates_) steps_.go_to(Step::kFreeName);
  return Next::kStep;
}

/// A dry run ends here, with what would have been stored.
Next ObjectWrite::commit() {
  const Resource& resource = stored();
  if (job_.context.dry_run) {
    return end(Written{Committer::imagine(resource, object_), creates_, deletes_, std::move(warnings_)});
  }
  store_step_.emplace(tools_.core, job_.context.asked, resource);
  auto committed = [self = shared_from_this()](const StatusResult<Commit>& result) {
    self->resume(self->on_committed(result));
  };
  if (creates_) {
    Json document = name_prefix_.empty() ? std::move(object_) : object_;
    tools_.committer.put(resource, object_key(job_.ns, job_.name), std::move(document), store::Revision(0),
                         Committer::Checks::kPassed, std::move(committed));
  } else if (deletes_) {
    tools_.committer.erase(resource, current_->key, std::move(object_), current_->revision, std::move(committed));
  } else {
    const auto checks = job_.trusted ? Committer::Checks::kSkipped : Committer::Checks::kPassed;
    tools_.committer.put(resource, current_->key, std::move(object_), current_->revision, checks, std::move(committed));
  }
  return Next::kWait;
}

Next ObjectWrite::on_committed(const StatusResult<Commit>& result) {
  store_step_->end(result);
  if (!result) return end(result.error());
  if (result->committed) {
    tools_.reservations.mark_held(hold_);
    Written written{result->object, creates_, deletes_, std::move(warnings_)};
    if (!row_.hooks->compiles_expressions) return end(std::move(written));
    // A policy or webhook is in effect when its write is answered.
    tools_.core.compilations->when_done(
        [self = shared_from_this(), written = std::move(written)]() mutable { self->end(std::move(written)); });
    return Next::kWait;
  }
  return creates_ ? retry_create(result->object) : retry_update(result->object);
}

/// `there`: the object that has the name. A generated name is replaced by another one.
Next ObjectWrite::retry_create(const ObjectPtr& there) {
  if (name_prefix_.empty() || ++attempts_ == kCreateAttempts) {
    tools_.reservations.give_back(hold_);
    return end(already_exists(stored(), job_.name, there));
  }
  std::string name = generated_name(name_prefix_, tools_.core.rng);
  Reservations::rename(hold_, object_key(job_.ns, name));
  object_["metadata"]["name"] = std::move(name);
  if (row_.hooks->name_create != nullptr) row_.hooks->name_create(object_);
  steps_.go_to(Step::kFreeName);
  return Next::kStep;
}

/// `there`: the object as another writer has left it; null: it was deleted.
Next ObjectWrite::retry_update(const ObjectPtr& there) {
  tools_.reservations.give_back(hold_);
  if (++attempts_ == (admission_ ? kAskedUpdateAttempts : kUpdateAttempts)) {
    return end(api::stale_version_status(stored().group_resource(), job_.name));
  }
  current_ = there;
  steps_.go_to(Step::kTarget);
  return Next::kStep;
}

}  // namespace spillway::apiserver
