// Spans as a request of OTLP over HTTP in its JSON encoding: the body of a POST to /v1/traces.
// Thread: any. Source: OpenTelemetry Protocol Specification 1.x, "OTLP/HTTP", "JSON Protobuf Encoding".
#pragma once

#include "telemetry/span.h"

#include <span>
#include <string>
#include <string_view>

namespace spillway::telemetry {

/// The process that reports the spans: "service.name" and "service.version" of the resource.
struct TracedService {
  std::string name;
  std::string version;
};

std::string otlp_body(const TracedService& service, std::span<const Span> spans);

}  // namespace spillway::telemetry
