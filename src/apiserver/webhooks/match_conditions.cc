// Admission: the match conditions of webhooks, and their calls of the authorizer.
#include "policy/webhooks/match_conditions.h"

#include "apiserver/webhooks/webhook_admission.h"

#include <fmt/format.h>

#include <utility>

namespace spillway::apiserver {

namespace {

api::UserInfo user_of(const cel::ServiceAccount& account) {
  return {.name = fmt::format("system:serviceaccount:{}:{}", account.ns, account.name),
          .uid = {},
          .groups = {"system:serviceaccounts", fmt::format("system:serviceaccounts:{}", account.ns),
                     "system:authenticated"}};
}

}  // namespace

cel::AccessDecision Admission::decide(const cel::AccessRequest& asked) const {
  const RequestAttributes attributes{.is_resource = asked.path.empty(),
                                     .verb = asked.verb,
                                     .group = asked.group,
                                     .version = "*",
                                     .resource = asked.resource,
                                     .subresource = asked.subresource,
                                     .ns = asked.ns,
                                     .name = asked.name,
                                     .path = asked.path};
  Verdict verdict =
      tools_.authorizer.authorize(asked.account ? user_of(*asked.account) : exchange_->user(), attributes);
  return {.allowed = verdict.allowed, .reason = std::move(verdict.reason)};
}

api::StatusResult<bool> Admission::wants(const webhooks::Webhook& webhook, const Form& form) {
  if (webhook.conditions == nullptr) return true;
  const webhooks::ReviewRequest request = described(form);
  const api::Json object = forms_.object_as(form);
  const api::Json old = forms_.old_as(form);
  const api::Json facts = webhooks::review_facts(request);
  const cel::AccessCheck check = [this](const cel::AccessRequest& asked) { return decide(asked); };
  const webhooks::MatchOutcome outcome =
      webhooks::evaluate(*webhook.conditions, {.object = object,
                                               .old_object = old,
                                               .request = facts,
                                               .access = {.group = std::string(request.resource.group),
                                                          .resource = std::string(request.resource.resource),
                                                          .subresource = std::string(request.subresource),
                                                          .ns = std::string(request.ns),
                                                          .name = std::string(request.name)},
                                               .check = &check});
  tools_.metrics.conditions_failed(webhook, subject_.operation, outcome.errors);
  if (outcome.matches) return true;
  if (!outcome.why || webhook.fails_open) {
    tools_.metrics.excluded(webhook, subject_.operation);
    return false;
  }
  const std::string why = outcome.why->text();
  tools_.core.log.warning("match conditions have no value, the request fails",
                          {{"webhook", webhook.name}, {"configuration", webhook.configuration}, {"why", why}});
  const Resource& asked = *forms_.asked().resource;
  return api::forbidden_status({std::string(asked.group), std::string(asked.plural)}, subject_.name, why);
}

}  // namespace spillway::apiserver
