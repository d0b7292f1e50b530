// The address of a webhook: its URL, or the pods behind its Service. A cluster may have no service proxy, so a ready
// pod is preferred to the cluster IP. Thread: loop. Source: Kubernetes docs, "Dynamic Admission Control", contacting
// the webhook.
#pragma once

#include "apiserver/ports/webhook_caller.h"
#include "apiserver/read/core.h"
#include "policy/webhooks/webhook.h"

#include <cstdint>
#include <string>

namespace spillway::apiserver {

/// The address as messages to clients show it: "https://NAME.NAMESPACE.svc:443/path?timeout=10s".
std::string shown_url(const webhooks::Webhook& webhook);

/// The address of a port of a Service: one of its ready pods, drawn at random, else its cluster IP, or its external
/// name.
struct ServicePlace {
  std::string host;
  std::int64_t port = 0;
};

/// kServiceUnavailable: there is no such service or port, or none of its pods can be reached. `path` is not used.
Result<ServicePlace> place_of(Core& core, const webhooks::ServiceReference& reference);

/// The failure that an answer without success means, as upstream's client describes it.
std::string refusal_text(const api::Response& response);

/// The call without its body. kServiceUnavailable: the service does not exist, or none of its pods can be reached.
Result<WebhookCall> call_of(Core& core, const webhooks::Webhook& webhook);

}  // namespace spillway::apiserver
