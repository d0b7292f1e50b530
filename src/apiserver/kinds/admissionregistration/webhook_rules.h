// Configurations of admission webhooks: defaults and validation. Thread: any (pure). Source: Kubernetes API reference,
// MutatingWebhookConfiguration and ValidatingWebhookConfiguration.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/kinds/fields/checked_field.h"
#include "policy/cel/environment.h"
#include "policy/webhooks/match_conditions.h"

#include <string_view>

namespace spillway::apiserver::kinds {

/// Defaults of every kind of webhook.
void default_webhooks(api::Json& configuration);
/// Further defaults of mutating webhooks.
void default_mutating_webhooks(api::Json& configuration);

/// Match conditions have to compile: expressions that this server cannot evaluate are refused.
void validate_webhooks(const api::Json& configuration, api::FieldErrors& errors);

/// Operations, groups, versions, resources and scope of one rule.
void validate_matched_rule(const CheckedField& rule);
/// Validates the conditions of one webhook, or of an admission policy; their expressions see the variables of
/// `environment`.
void validate_match_conditions(const CheckedField& conditions,
                               const cel::Environment& environment = webhooks::condition_environment());

/// The address of a webhook: exactly one of url and service.
void validate_webhook_client(const CheckedField& client);

/// https://HOST[:PORT][/PATH], as the address of a webhook.
void validate_webhook_url(std::string_view url, std::string_view path, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
