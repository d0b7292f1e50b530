// An answered request as spans: the request, and within it how long it waited for its turn and what others did for it
// (request_steps.h).
// Thread: loop. Source: OpenTelemetry, "Semantic conventions for HTTP spans"; docs/observability.md, "Traces".
#pragma once

#include "apiserver/request/exchange.h"
#include "base/time.h"
#include "telemetry/tracer.h"

namespace spillway::apiserver {

/// `code`: of the answer. Traces only a request that Tracer::wants_request() selects, or whose header traceparent does,
/// from a client with that right (api::kMastersGroup, "system:monitoring"). A watch never counts as slow: it lasts as
/// long as its client wants.
void trace_request(telemetry::Tracer& tracer, const Exchange& exchange, int code, Now now);

}  // namespace spillway::apiserver
