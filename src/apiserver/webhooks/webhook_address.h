// Where a webhook is reached: its URL, or the pods behind its Service. Nothing in a cluster of ours sends the traffic
// of a cluster IP on, so a pod that is ready comes first. Thread: loop. Source: Kubernetes docs, "Dynamic Admission
// Control", contacting the webhook.
#pragma once

#include "apiserver/ports/webhook_caller.h"
#include "apiserver/read/core.h"
#include "policy/webhooks/webhook.h"

#include <cstdint>
#include <string>

namespace spillway::apiserver {

/// The address as clients are told of it: "https://NAME.NAMESPACE.svc:443/path?timeout=10s".
std::string shown_url(const webhooks::Webhook& webhook);

/// Where a port of a Service is reached: at one of its ready pods, drawn at random, else at its cluster IP, or at its
/// external name.
struct ServicePlace {
  std::string host;
  std::int64_t port = 0;
};

/// kServiceUnavailable: there is no such service or port, or none of its pods can be reached. `path` is not used.
Result<ServicePlace> place_of(Core& core, const webhooks::ServiceReference& reference);

/// The failure that an answer without success means, as upstream's client describes it.
std::string refusal_text(const api::Response& response);

/// The call without its body. kServiceUnavailable: there is no such service, none of its pods can be asked.
Result<WebhookCall> call_of(Core& core, const webhooks::Webhook& webhook);

}  // namespace spillway::apiserver
