#include "apiserver/webhooks/webhook_admission.h"

#include "api/schema/typed.h"
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
constexpr std::size_t kWarningsMax = 256;  // warnings of all webhooks for one request

const Json* present(const Json& object) {
  return object.is_null() ? nullptr : &object;
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
      forms_(tools.core, exchange_->route),
      mutating_(table.list(webhooks::Phase::kMutating)),
      validating_(table.list(webhooks::Phase::kValidating)),
      policies_(policies.list()) {}

webhooks::Subject Admission::rule_subject() const {
  const Subresource* part = exchange_->route.subresource;
  return {.operation = subject_.operation,
          .subresource = part == nullptr ? std::string_view() : part->name,
          .ns = is_namespace(*forms_.asked().resource) ? subject_.name : subject_.ns,
          .name = subject_.name,
          .names = forms_.names()};
}

/// Null: the webhook is not called for the object in its present state.
const Admission::Form* Admission::form_for(const Webhook& webhook) const {
  const webhooks::ResourceName* name = matched_name(webhook, rule_subject());
  if (name == nullptr) return nullptr;
  const bool somewhere = !subject_.ns.empty() || is_namespace(*forms_.asked().resource);
  const api::StringMap labels =
      somewhere && !webhook.namespaces.is_everything() ? namespace_labels() : api::StringMap();
  const bool wanted = selects(webhook, {.object = present(forms_.object()),
                                        .old = present(forms_.old()),
                                        .namespace_labels = somewhere ? &labels : nullptr});
  return wanted ? &forms_.of(*name) : nullptr;
}

/// The labels of the namespace; for a write of a Namespace, its new labels.
api::StringMap Admission::namespace_labels() const {
  const bool own = is_namespace(*forms_.asked().resource);
  const Json* labels = own ? forms_.object().at({"metadata", "labels"}) : nullptr;
  if (own && !forms_.object().is_null()) {
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

webhooks::ReviewRequest Admission::described(const Form& form) const {
  const Form& asked = forms_.asked();
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
  const Json object = forms_.object_as(form);
  const Json old = forms_.old_as(form);
  webhooks::ReviewRequest request = described(form);
  request.uid = uid;
  request.object = present(object);
  request.old = present(old);
  return webhooks::review_text(request);
}

/// The error that ends the admission early (deadline, finished exchange); nullopt: it continues.
std::optional<Status> Admission::hindrance() const {
  if (!exchange_->finished() && tools_.core.now.mono < deadline_) return std::nullopt;
  return api::retry_status(ErrorCode::kTimeout, "request did not complete within the requested timeout", 1);
}

void Admission::ask(const Webhook& webhook, const Form& form, WebhookCalls::Answered answered) {
  const std::string uid = new_uid(tools_.core.rng);
  const auto step = exchange_->steps.begin(RequestStep::Of::kWebhook, webhook.name, tools_.core.now.mono);
  tools_.calls.ask(
      webhook, uid, review(form, uid), deadline_ - tools_.core.now.mono,
      [self = shared_from_this(), step, answered = std::move(answered)](Result<ReviewAnswer> answer) mutable {
        self->exchange_->steps.end(step, self->tools_.core.now.mono, !answer);
        answered(std::move(answer));
      });
}

// Forms of the objects that are made on the way.

bool Admission::stops_at(const Form& form) {
  if (!forms_.lacks(form)) return false;
  missing_ = &form;
  return true;
}

StatusResult<void> Admission::check_converted(const Form& form) const {
  const Status* fault = forms_.fault(form);
  if (fault != nullptr) return webhooks::internal_status(fault->message);
  return {};
}

void Admission::convert_missing(RequestForms::Done done) {
  forms_.convert(*std::exchange(missing_, nullptr), std::move(done));
}

// Mutating webhooks.

void Admission::mutate(Json object, Json old, Mutated done) {
  const bool changed_since = round_ == 1 && !(object == forms_.object());
  if (changed_since) again_.merge(previous_);
  forms_.set(std::move(object), std::move(old));
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
  for (; next_ < mutating_->size(); ++next_) {
    const Webhook& webhook = *(*mutating_)[next_];
    if (round_ > 1 && !again_.contains(next_)) continue;
    const Form* form = form_for(webhook);
    if (form == nullptr) continue;
    if (stops_at(*form)) return std::nullopt;
    SPILLWAY_TRY_VOID(check_converted(*form));
    SPILLWAY_TRY(wanted, wants(webhook, *form));
    if (wanted) return Wanted{.index = next_++, .form = form};
  }
  return std::nullopt;
}

void Admission::on_next_mutating(const StatusResult<std::optional<Wanted>>& found) {
  if (!found) return end_mutation(found.error());
  if (missing_ != nullptr) {
    return convert_missing([self = shared_from_this()] { self->ask_next_mutating(); });
  }
  if (!*found) return end_mutation(changed_ ? std::optional(forms_.object()) : std::nullopt);
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
  if (const auto verdict = evaluate(webhook, asked, answer); !verdict) return end_mutation(verdict.error());
  if (!answer) return on_taken(index, false);
  StatusResult<std::optional<Json>> made = std::nullopt;
  if (answer->patch) made = patched(webhook, form, *answer->patch);
  if (!made) {
    tools_.metrics.rejected(webhook, subject_.operation, WebhookMetrics::Cause::kServer, 0);
    return end_mutation(made.error());
  }
  record_mutation(index, made->has_value());
  if (!*made) return on_taken(index, false);
  forms_.take(form, **std::move(made), [self = shared_from_this(), index](const StatusResult<void>& taken) {
    taken ? self->on_taken(index, true) : self->end_mutation(taken.error());
  });
}

/// The answer of a webhook has been dealt with.
void Admission::on_taken(std::size_t index, bool changed) {
  if (changed) {
    changed_ = true;
    again_.merge(previous_);
    previous_.clear();
  }
  if ((*mutating_)[index]->asked_again && round_ == 1) previous_.insert(index);
  ask_next_mutating();
}

StatusResult<std::optional<Json>> Admission::patched(const Webhook& webhook, const Form& form,
                                                     const Json& patch) const {
  const api::Type* type = type_of(form);
  if (forms_.object().is_null() || type == nullptr || subject_.operation == Operation::kConnect) {
    return webhooks::internal_status(fmt::format(
        "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
        webhook.name));
  }
  const Json before = forms_.object_as(form);
  SPILLWAY_TRY(made, webhooks::patched(before, patch));
  if (made == before) return std::nullopt;
  const Result<api::TypedDocument> typed = api::read_patched(*type, made, &before);
  if (!typed) return webhooks::internal_status(typed.error().text());
  if (typed->object == before) return std::nullopt;
  return std::optional(typed->object);
}

void Admission::record_mutation(std::size_t index, bool changed) {
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
  forms_.set(std::move(object), std::move(old));
  decided_ = std::move(done);
  next_ = 0;
  evaluated_ = false;
  wanted_.clear();
  ask_validating();
}

void Admission::end_validation(const StatusResult<void>& result) {
  Decided done = std::move(decided_);
  done(result);
}

void Admission::ask_validating() {
  if (const auto why = hindrance()) return end_validation(*why);
  const auto found = std::make_shared<StatusResult<void>>();
  tools_.core.in_slices([self = shared_from_this(), found] { *found = self->find_validating(); },
                        [self = shared_from_this(), found] { self->on_validating(*found); });
}

StatusResult<void> Admission::find_validating() {
  if (phases_.policies && !evaluated_) SPILLWAY_TRY_VOID(evaluate_policies());
  if (!phases_.validating || missing_ != nullptr) return {};
  for (; next_ < validating_->size(); ++next_) {
    const Webhook& webhook = *(*validating_)[next_];
    const Form* form = form_for(webhook);
    if (form == nullptr) continue;
    if (stops_at(*form)) return {};
    SPILLWAY_TRY_VOID(check_converted(*form));
    SPILLWAY_TRY(asked, wants(webhook, *form));
    if (!asked) continue;
    if (subject_.dry_run && !webhook.dry_run_safe) return webhooks::dry_run_status(webhook.name);
    wanted_.push_back({.index = next_, .form = form});
  }
  return {};
}

void Admission::on_validating(const StatusResult<void>& found) {
  if (!found) return end_validation(found);
  if (missing_ != nullptr) {
    return convert_missing([self = shared_from_this()] { self->ask_validating(); });
  }
  if (wanted_.empty()) return end_validation({});
  ask_wanted();
}

/// All at once; the first refusal in the order of the webhooks counts.
void Admission::ask_wanted() {
  struct Votes {
    std::size_t open = 0;
    std::vector<std::optional<Status>> refusals;
  };

  auto votes = std::make_shared<Votes>();
  votes->open = wanted_.size();
  votes->refusals.resize(wanted_.size());
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Webhook& webhook = *(*validating_)[wanted_[i].index];
    ask(webhook, *wanted_[i].form,
        [self = shared_from_this(), votes, i, &webhook,
         asked = tools_.core.now.mono](const Result<ReviewAnswer>& answer) {
          if (const auto verdict = self->evaluate(webhook, asked, answer); !verdict)
            votes->refusals[i] = verdict.error();
          if (--votes->open != 0) return;
          const auto first = std::ranges::find_if(votes->refusals, [](const auto& one) { return one.has_value(); });
          self->end_validation(first == votes->refusals.end() ? StatusResult<void>() : StatusResult<void>(**first));
        });
  }
}

// Answers.

StatusResult<void> Admission::evaluate(const Webhook& webhook, Instant asked, const Result<ReviewAnswer>& answer) {
  const Duration took = tools_.core.now.mono - asked;
  if (answer && answer->allowed) {
    record_answer(webhook, *answer);
    tools_.metrics.asked(webhook, subject_.operation, took, false, 200);
    return {};
  }
  if (answer) {
    record_answer(webhook, *answer);
    Status denied = webhooks::denial_status(webhook.name, answer->status);
    tools_.metrics.asked(webhook, subject_.operation, took, true, denied.code);
    tools_.metrics.rejected(webhook, subject_.operation, WebhookMetrics::Cause::kDenied, denied.code);
    return denied;
  }
  const std::string why = answer.error().text();
  const bool open = webhook.fails_open;
  tools_.core.log.warning(open ? "webhook not called, the request continues" : "webhook not called, the request fails",
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
void Admission::record_answer(const Webhook& webhook, const ReviewAnswer& answer) {
  std::vector<std::string>& warnings = exchange_->warnings;
  for (const std::string& warning : answer.warnings) {
    if (warnings.size() < kWarningsMax && std::ranges::find(warnings, warning) == warnings.end())
      warnings.push_back(warning);
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
  // Rules only depend on whether the object has a namespace.
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
      Admission::Tools{core_, webhook_calls_, metrics_, policy_metrics_, authorizer_}, exchange,
      Admission::Subject{.operation = operation, .ns = ns, .name = name, .dry_run = dry_run}, phases, table_,
      policies_);
  admission->set_options(admission_options(*exchange, operation, dry_run));
  return admission;
}

}  // namespace spillway::apiserver
