// Configurations of admission webhooks: what is filled in, and what must hold. Thread: any (pure).
// Source: Kubernetes API reference, MutatingWebhookConfiguration and ValidatingWebhookConfiguration.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"

#include <string_view>

namespace spillway::apiserver::kinds {

/// What every kind of webhook has.
void default_webhooks(api::Json& configuration);
/// What those have that may change objects.
void default_mutating_webhooks(api::Json& configuration);

/// Match conditions have to compile: what this server does not evaluate is refused.
void validate_webhooks(const api::Json& configuration, api::FieldErrors& errors);

/// https://HOST[:PORT][/PATH], as the address of a webhook.
void validate_webhook_url(std::string_view url, std::string_view path, api::FieldErrors& errors);

}  // namespace spillway::apiserver::kinds
