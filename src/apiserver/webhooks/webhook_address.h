// Where a webhook is reached: its URL, or the pods behind its Service. Nothing in a cluster of ours sends the traffic
// of a cluster IP on, so a pod that is ready comes first. Thread: loop. Source: Kubernetes docs, "Dynamic Admission
// Control", contacting the webhook.
#pragma once

#include "apiserver/ports/webhook_caller.h"
#include "apiserver/read/core.h"
#include "policy/webhooks/webhook.h"

#include <string>

namespace spillway::apiserver {

/// The address as clients are told of it: "https://NAME.NAMESPACE.svc:443/path?timeout=10s".
std::string shown_url(const webhooks::Webhook& webhook);

/// The failure that an answer without success means, as upstream's client describes it.
std::string refusal_text(const api::Response& response);

/// The call without its body. kServiceUnavailable: there is no such service, none of its pods can be asked.
Result<WebhookCall> call_of(Core& core, const webhooks::Webhook& webhook);

}  // namespace spillway::apiserver
