#include "apiserver/webhooks/webhook_admission.h"

#include "api/schema/typed.h"
#include "apiserver/read/object_converter.h"
#include "apiserver/request/body.h"
#include "apiserver/resource/custom_kind.h"
#include "apiserver/webhooks/admission_options.h"
#include "policy/webhooks/review_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

using api::Json;
using api::Status;
using api::StatusResult;
using webhooks::Operation;
using webhooks::ReviewAnswer;
using webhooks::Webhook;

/// A request that takes longer is answered 504; its webhooks are not waited for.
constexpr Duration kAdmissionMax = seconds(59);
constexpr std::size_t kWarningsMax = 256;  // that webhooks leave with one request

const Json* present(const Json& object) {
  return object.is_null() ? nullptr : &object;
}

/// An object in the form of one resource as another one serves it.
Json served(const Resource& from, const Resource& to, Json object) {
  if (&from == &to || object.is_null()) return object;
  return to.from_stored(from.to_stored(object));
}

webhooks::ResourceName rule_name(const Resource& resource) {
  return {resource.group, resource.version, resource.plural};
}

/// The resource, then the others that show the same objects.
std::vector<const Resource*> served_as(const ResourceRegistry& registry, const Resource& asked) {
  std::vector<const Resource*> rows{&asked};
  for (const Resource& row : registry.all()) {
    if (asked.stored() && &row != &asked && row.storage == asked.storage) rows.push_back(&row);
  }
  return rows;
}

bool is_namespace(const Resource& resource) {
  return resource.is("", "Namespace");
}

}  // namespace

Admission::Admission(Tools tools, ExchangePtr exchange, Subject subject, Phases phases, const WebhookTable& table,
                     const PolicyTable& policies)
    : tools_(tools),
      exchange_(std::move(exchange)),
      subject_(std::move(subject)),
      phases_(phases),
      deadline_(tools.core.now.mono + kAdmissionMax),
      mutating_(table.list(webhooks::Phase::kMutating)),
      validating_(table.list(webhooks::Phase::kValidating)),
      policies_(policies.list()) {
  for (const Resource* row : served_as(tools_.core.registry, *exchange_->route.resource)) {
    forms_.push_back({row, rule_name(*row)});
    names_.push_back(forms_.back().name);
  }
}

webhooks::Subject Admission::rule_subject() const {
  const Subresource* part = exchange_->route.subresource;
  return {.operation = subject_.operation,
          .subresource = part == nullptr ? std::string_view() : part->name,
          .ns = is_namespace(*forms_.front().resource) ? subject_.name : subject_.ns,
          .name = subject_.name,
          .names = names_};
}

/// Null: the webhook is not asked about the object as it is now.
const Admission::Form* Admission::form_for(const Webhook& webhook) const {
  const webhooks::ResourceName* name = matched_name(webhook, rule_subject());
  if (name == nullptr) return nullptr;
  const bool somewhere = !subject_.ns.empty() || is_namespace(*forms_.front().resource);
  const api::StringMap labels =
      somewhere && !webhook.namespaces.is_everything() ? namespace_labels() : api::StringMap();
  const bool wanted = selects(
      webhook, {.object = present(object_), .old = present(old_), .namespace_labels = somewhere ? &labels : nullptr});
  return wanted ? &*std::ranges::find(forms_, *name, &Form::name) : nullptr;
}

/// For a write of a Namespace: its new labels.
api::StringMap Admission::namespace_labels() const {
  const bool own = is_namespace(*forms_.front().resource);
  const Json* labels = own ? object_.at({"metadata", "labels"}) : nullptr;
  if (own && !object_.is_null()) {
    api::StringMap read;
    if (labels == nullptr || labels->if_object() == nullptr) return read;
    for (const auto& [key, value] : *labels->if_object()) read.emplace(key, value.string_at({}));
    return read;
  }
  const ResourceCache& namespaces = tools_.core.cache.of(tools_.core.registry.get("namespaces"));
  const ObjectPtr found = namespaces.find(own ? subject_.name : subject_.ns);
  return found ? found->meta.labels : api::StringMap();
}

webhooks::KindName Admission::kind_of(const Form& form) const {
  const Subresource* part = exchange_->route.subresource;
  if (part != nullptr && !part->kind.empty()) return {part->group, part->version, part->kind};
  return {form.resource->group, form.resource->version, form.resource->kind};
}

const api::Type* Admission::type_of(const Form& form) const {
  const Subresource* part = exchange_->route.subresource;
  const bool own = part == nullptr || part->kind.empty();
  if (own && form.resource->custom != nullptr) return form.resource->custom->body;
  const webhooks::KindName kind = kind_of(form);
  return api::find_kind(kind.group.empty() ? std::string(kind.version) : fmt::format("{}/{}", kind.group, kind.version),
                        kind.kind);
}

bool Admission::is_unconverted(const Form& form) const {
  return has_webhook(*form.resource) && &form != &forms_.front();
}

Status Admission::unconverted_status(std::string_view asker) const {
  const Resource& asked = *forms_.front().resource;
  return webhooks::internal_status(
      fmt::format("{} matches {} in another version than {}, and this server converts no objects for admission: name "
                  "every served version in its rules",
                  asker, asked.plural, asked.version));
}

Json Admission::as_served(const Form& form, const Json& object) const {
  return served(*forms_.front().resource, *form.resource, object);
}

webhooks::ReviewRequest Admission::described(const Form& form) const {
  const Form& asked = forms_.front();
  const webhooks::Subject subject = rule_subject();
  return {.uid = {},
          .operation = subject_.operation,
          .kind = kind_of(form),
          .resource = form.name,
          .asked_kind = kind_of(asked),
          .asked_resource = asked.name,
          .subresource = subject.subresource,
          .name = subject_.name,
          .ns = subject.ns,
          .user = exchange_->user(),
          .dry_run = subject_.dry_run,
          .options = options_};
}

std::string Admission::review(const Form& form, const std::string& uid) const {
  const Json object = as_served(form, object_);
  const Json old = as_served(form, old_);
  webhooks::ReviewRequest request = described(form);
  request.uid = uid;
  request.object = present(object);
  request.old = present(old);
  return webhooks::review_text(request);
}

/// The error that ends the admission early (deadline, finished exchange); nullopt: go on.
std::optional<Status> Admission::hindrance() const {
  if (!exchange_->finished() && tools_.core.now.mono < deadline_) return std::nullopt;
  return api::retry_status(ErrorCode::kTimeout, "request did not complete within the requested timeout", 1);
}

void Admission::ask(const Webhook& webhook, const Form& form, WebhookDesk::Answered answered) {
  const std::string uid = new_uid(tools_.core.rng);
  const auto step = exchange_->steps.begin(RequestStep::Of::kWebhook, webhook.name, tools_.core.now.mono);
  tools_.desk.ask(
      webhook, uid, review(form, uid), deadline_ - tools_.core.now.mono,
      [self = shared_from_this(), step, answered = std::move(answered)](Result<ReviewAnswer> answer) mutable {
        self->exchange_->steps.end(step, self->tools_.core.now.mono, !answer);
        answered(std::move(answer));
      });
}

// Mutating webhooks.

void Admission::mutate(Json object, Json old, Mutated done) {
  const bool changed_since = round_ == 1 && !(object == object_);
  if (changed_since) again_.merge(previous_);
  object_ = std::move(object);
  old_ = std::move(old);
  mutated_ = std::move(done);
  ++round_;
  next_ = 0;
  changed_ = false;
  ask_next_mutating();
}

void Admission::ask_next_mutating() {
  if (const auto why = hindrance()) return end_mutation(*why);
  const auto found = std::make_shared<StatusResult<std::optional<Wanted>>>(std::nullopt);
  tools_.core.in_slices([self = shared_from_this(), found] { *found = self->find_next_mutating(); },
                        [self = shared_from_this(), found] { self->on_next_mutating(*found); });
}

StatusResult<std::optional<Admission::Wanted>> Admission::find_next_mutating() {
  while (next_ < mutating_->size()) {
    const std::size_t index = next_++;
    const Webhook& webhook = *(*mutating_)[index];
    if (round_ > 1 && !again_.contains(index)) continue;
    const Form* form = form_for(webhook);
    if (form == nullptr) continue;
    SPILLWAY_TRY(wanted, wants(webhook, *form));
    if (wanted) return Wanted{.index = index, .form = form};
  }
  return std::nullopt;
}

void Admission::on_next_mutating(const StatusResult<std::optional<Wanted>>& found) {
  if (!found) return end_mutation(found.error());
  if (!*found) return end_mutation(changed_ ? std::optional(object_) : std::nullopt);
  const auto [index, form] = **found;
  const Webhook& webhook = *(*mutating_)[index];
  if (subject_.dry_run && !webhook.dry_run_safe) return end_mutation(webhooks::dry_run_status(webhook.name));
  ask(webhook, *form,
      [self = shared_from_this(), index, form, asked = tools_.core.now.mono](Result<ReviewAnswer> answer) {
        self->on_mutation(index, *form, asked, std::move(answer));
      });
}

void Admission::on_mutation(std::size_t index, const Form& form, Instant asked, Result<ReviewAnswer> answer) {
  const Webhook& webhook = *(*mutating_)[index];
  if (const auto judged = judge(webhook, asked, answer); !judged) return end_mutation(judged.error());
  bool changed = false;
  if (answer && answer->patch) {
    const StatusResult<bool> taken = take_patch(webhook, form, *answer->patch);
    if (!taken) {
      tools_.metrics.rejected(webhook, subject_.operation, WebhookMetrics::Cause::kServer, 0);
      return end_mutation(taken.error());
    }
    changed = *taken;
  }
  if (answer) note_mutation(index, changed);
  if (changed) {
    changed_ = true;
    again_.merge(previous_);
    previous_.clear();
  }
  if (webhook.asked_again && round_ == 1) previous_.insert(index);
  ask_next_mutating();
}

/// True if the patch changed the object.
StatusResult<bool> Admission::take_patch(const Webhook& webhook, const Form& form, const Json& patch) {
  const api::Type* type = type_of(form);
  if (object_.is_null() || type == nullptr || subject_.operation == Operation::kConnect) {
    return webhooks::internal_status(fmt::format(
        "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
        webhook.name));
  }
  const Resource& asked = *forms_.front().resource;
  const Json before = served(asked, *form.resource, object_);
  SPILLWAY_TRY(made, webhooks::patched(before, patch));
  if (made == before) return false;
  const Result<api::TypedDocument> typed = api::read_patched(*type, made, &before);
  if (!typed) return webhooks::internal_status(typed.error().text());
  if (typed->object == before) return false;
  object_ = served(*form.resource, asked, typed->object);
  return true;
}

void Admission::note_mutation(std::size_t index, bool changed) {
  AnswerObserver* observer = exchange_->observer();
  if (observer == nullptr) return;
  const Webhook& webhook = *(*mutating_)[index];
  const Json value =
      Json::object({{"configuration", webhook.configuration}, {"webhook", webhook.name}, {"mutated", changed}});
  observer->on_annotation(fmt::format("mutation.webhook.admission.k8s.io/round_{}_index_{}", round_ - 1, index),
                          api::to_text(value));
}

void Admission::end_mutation(StatusResult<std::optional<Json>> result) {
  Mutated done = std::move(mutated_);
  done(std::move(result));
}

// Validating webhooks.

void Admission::validate(Json object, Json old, Decided done) {
  object_ = std::move(object);
  old_ = std::move(old);
  if (const auto why = hindrance()) return done(*why);
  const auto found = std::make_shared<StatusResult<std::vector<Wanted>>>();
  tools_.core.in_slices([self = shared_from_this(), found] { *found = self->find_validating(); },
                        [self = shared_from_this(), found, done = std::move(done)]() mutable {
                          if (!*found) return done(found->error());
                          self->ask_validating(**found, std::move(done));
                        });
}

StatusResult<std::vector<Admission::Wanted>> Admission::find_validating() {
  std::vector<Wanted> wanted;
  if (phases_.policies) SPILLWAY_TRY_VOID(judge_by_policies());
  if (!phases_.validating) return wanted;
  for (std::size_t index = 0; index < validating_->size(); ++index) {
    const Webhook& webhook = *(*validating_)[index];
    const Form* form = form_for(webhook);
    if (form == nullptr) continue;
    SPILLWAY_TRY(asked, wants(webhook, *form));
    if (!asked) continue;
    if (subject_.dry_run && !webhook.dry_run_safe) return webhooks::dry_run_status(webhook.name);
    wanted.push_back({.index = index, .form = form});
  }
  return wanted;
}

/// All at once; the first refusal in the order of the webhooks counts.
void Admission::ask_validating(const std::vector<Wanted>& wanted, Decided done) {
  struct Votes {
    std::size_t open = 0;
    std::vector<std::optional<Status>> refusals;
    Decided done;
  };

  if (wanted.empty()) return done({});
  auto votes = std::make_shared<Votes>();
  votes->open = wanted.size();
  votes->refusals.resize(wanted.size());
  votes->done = std::move(done);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Webhook& webhook = *(*validating_)[wanted[i].index];
    ask(webhook, *wanted[i].form,
        [self = shared_from_this(), votes, i, &webhook,
         asked = tools_.core.now.mono](const Result<ReviewAnswer>& answer) {
          if (const auto judged = self->judge(webhook, asked, answer); !judged) votes->refusals[i] = judged.error();
          if (--votes->open != 0) return;
          const auto first = std::ranges::find_if(votes->refusals, [](const auto& one) { return one.has_value(); });
          votes->done(first == votes->refusals.end() ? StatusResult<void>() : StatusResult<void>(**first));
        });
  }
}

// Answers.

StatusResult<void> Admission::judge(const Webhook& webhook, Instant asked, const Result<ReviewAnswer>& answer) {
  const Duration took = tools_.core.now.mono - asked;
  if (answer && answer->allowed) {
    note(webhook, *answer);
    tools_.metrics.asked(webhook, subject_.operation, took, false, 200);
    return {};
  }
  if (answer) {
    note(webhook, *answer);
    Status denied = webhooks::denial_status(webhook.name, answer->status);
    tools_.metrics.asked(webhook, subject_.operation, took, true, denied.code);
    tools_.metrics.rejected(webhook, subject_.operation, WebhookMetrics::Cause::kDenied, denied.code);
    return denied;
  }
  const std::string why = answer.error().text();
  const bool open = webhook.fails_open;
  tools_.core.log.warning(open ? "webhook not asked, the request goes on" : "webhook not asked, the request fails",
                          {{"webhook", webhook.name}, {"configuration", webhook.configuration}, {"why", why}});
  tools_.metrics.asked(webhook, subject_.operation, took, !open, 0);
  if (!open) {
    tools_.metrics.rejected(webhook, subject_.operation, WebhookMetrics::Cause::kNotCalled, 500);
    return webhooks::failure_status(webhook.name, why);
  }
  tools_.metrics.failed_open(webhook);
  if (const auto late = hindrance()) return *late;
  return {};
}

/// Adds an answer's warnings for the client and its annotations for the audit log, once per webhook.
void Admission::note(const Webhook& webhook, const ReviewAnswer& answer) {
  std::vector<std::string>& told = exchange_->warnings;
  for (const std::string& warning : answer.warnings) {
    if (told.size() < kWarningsMax && std::ranges::find(told, warning) == told.end()) told.push_back(warning);
  }
  AnswerObserver* observer = exchange_->observer();
  if (observer == nullptr) return;
  for (const auto& [key, value] : answer.annotations) {
    observer->on_annotation(fmt::format("{}/{}", webhook.name, key), value);
  }
}

Admission::Phases WebhookAdmission::phases_of(const Resource& resource, const Subresource* part, Operation operation) {
  const std::uint64_t version = table_.version() + policies_.version();
  if (version_ != version || generation_ != core_.registry.generation()) {
    version_ = version;
    generation_ = core_.registry.generation();
    phases_.clear();
  }
  const auto [known, first] = phases_.try_emplace({&resource, part, operation});
  if (!first || webhooks::is_exempt(rule_name(resource))) return known->second;
  std::vector<webhooks::ResourceName> names;
  for (const Resource* row : served_as(core_.registry, resource)) names.push_back(rule_name(*row));
  // Rules ask for no more of a namespace than whether there is one.
  const webhooks::Subject subject{.operation = operation,
                                  .subresource = part == nullptr ? std::string_view() : part->name,
                                  .ns = resource.namespaced() ? "any" : "",
                                  .names = names};
  const auto asked = [&](webhooks::Phase phase) {
    return std::ranges::any_of(*table_.list(phase),
                               [&](const auto& webhook) { return matched_name(*webhook, subject) != nullptr; });
  };
  known->second = {.mutating = core_.admission.mutating_webhooks && asked(webhooks::Phase::kMutating),
                   .validating = core_.admission.validating_webhooks && asked(webhooks::Phase::kValidating),
                   .policies = core_.admission.admission_policies && policies_.asks(subject)};
  return known->second;
}

AdmissionPtr WebhookAdmission::find(const ExchangePtr& exchange, Operation operation, const std::string& ns,
                                    const std::string& name, bool dry_run) {
  const Route& route = exchange->route;
  const Admission::Phases phases = phases_of(*route.resource, route.subresource, operation);
  if (!phases.any()) return nullptr;
  auto admission = std::make_shared<Admission>(
      Admission::Tools{core_, desk_, metrics_, policy_metrics_, authorizer_}, exchange,
      Admission::Subject{.operation = operation, .ns = ns, .name = name, .dry_run = dry_run}, phases, table_,
      policies_);
  admission->set_options(admission_options(*exchange, operation, dry_run));
  return admission;
}

}  // namespace spillway::apiserver
