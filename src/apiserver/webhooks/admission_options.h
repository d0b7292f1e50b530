// The options of a request in the form that webhooks receive. Thread: any (pure).
// Source: Kubernetes API reference, CreateOptions, UpdateOptions, PatchOptions, DeleteOptions.
#pragma once

#include "api/json/json.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "policy/webhooks/match.h"

namespace spillway::apiserver {

/// Made from the query of the request; null for a connection, which has none.
api::Json admission_options(const Exchange& exchange, webhooks::Operation operation, bool dry_run);

api::Json admission_options(const DeleteOptions& options);

/// The options object of a connection to a pod or node: PodExecOptions, NodeProxyOptions, …
api::Json connect_options(const Exchange& exchange);

}  // namespace spillway::apiserver
