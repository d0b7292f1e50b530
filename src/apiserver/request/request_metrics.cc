#include "apiserver/request/request_metrics.h"

namespace spillway::apiserver {

RequestMetrics::RequestMetrics(telemetry::Registry& registry)
    : registry_(registry),
      in_flight_(registry.gauge("apiserver_current_inflight_requests", "Requests and watches that are being answered")),
      watches_(registry.gauge("apiserver_longrunning_requests", "Open watches")) {}

void RequestMetrics::answered(const Exchange& exchange, int code, Instant now) {
  const Route& route = exchange.route;
  const std::string_view resource = route.resource == nullptr ? std::string_view() : route.resource->plural;
  const std::string_view verb = route.resource == nullptr ? std::string_view("other") : to_string(route.verb);
  const auto [counter, is_new] = by_request_.try_emplace({verb, resource, code});
  if (is_new) {
    counter->second = registry_.counter("apiserver_request_total", "Requests answered, by verb, resource and code",
                                        {{"verb", verb}, {"resource", resource}, {"code", std::to_string(code)}});
  }
  counter->second.add();
  if (route.resource != nullptr && route.verb == Verb::kWatch) return;
  const auto [histogram, first] = duration_by_verb_.try_emplace(verb);
  if (first) {
    histogram->second =
        registry_.histogram("apiserver_request_duration_seconds", "Time from request to answer",
                            {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5}, {{"verb", verb}});
  }
  histogram->second.observe(std::chrono::duration<double>(now - exchange.started).count());
}

}  // namespace spillway::apiserver
