#include "apiserver/request/request_trace.h"

#include "api/text/identities.h"
#include "base/utf8.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kMonitoringGroup = "system:monitoring";
constexpr std::size_t kTextMax = 256;  // limit for texts that clients choose; thousands of spans may be queued
constexpr int kServerError = 500;

/// True for users that may have a request traced. Any other client could fill the collector, or add spans to another
/// client's trace.
bool may_ask(const api::UserInfo& user) {
  return std::ranges::any_of(
      user.groups, [](const std::string& group) { return group == api::kMastersGroup || group == kMonitoringGroup; });
}

std::optional<telemetry::SpanContext> asked_by(const Exchange& exchange) {
  const std::string_view header = exchange.request().header("traceparent");
  if (header.empty() || !may_ask(exchange.user())) return std::nullopt;
  return telemetry::parse_traceparent(header);
}

std::string cut(std::string_view text) {
  return printable(text.substr(0, kTextMax));  // a collector refuses a batch for one byte that is not UTF-8
}

std::string name_of(const RequestAttributes& asked) {
  std::string name = asked.verb;
  if (!asked.resource.empty()) name += ' ' + asked.resource;
  if (!asked.subresource.empty()) name += '/' + asked.subresource;
  return cut(name);
}

std::vector<telemetry::Attribute> attributes_of(const Exchange& exchange, int code) {
  const RequestAttributes& asked = exchange.asked;
  std::vector<telemetry::Attribute> attributes{
      {"http.request.method", std::string(api::to_string(exchange.request().method))},
      {"url.path", cut(asked.path)},
      {"http.response.status_code", std::int64_t{code}},
      {"user_agent.original", cut(exchange.request().header("user-agent"))},
      {"user.name", cut(exchange.user().name)},
      {"spillway.audit_id", exchange.audit_id()}};
  if (!asked.ns.empty()) attributes.push_back({"k8s.namespace.name", cut(asked.ns)});
  return attributes;
}

/// The name of a step's span, and the part that the step called.
std::pair<std::string_view, std::string_view> words_of(RequestStep::Of of) {
  switch (of) {
    case RequestStep::Of::kWebhook:
      return {"ask webhook", "spillway.webhook"};
    case RequestStep::Of::kStore:
      return {"write to store", "spillway.resource"};
    case RequestStep::Of::kAgent:
      return {"ask agent", "k8s.node.name"};
    case RequestStep::Of::kPod:
      return {"ask pod", "server.address"};
  }
  return {};
}

}  // namespace

void trace_request(telemetry::Tracer& tracer, const Exchange& exchange, int code, Now now) {
  const Duration took = now.mono - exchange.started;
  const bool watches = exchange.asked.action == Verb::kWatch;
  const std::optional<telemetry::SpanContext> asked = asked_by(exchange);
  if (!(asked && asked->sampled) && !tracer.wants_request(watches ? Duration{} : took)) return;
  const auto at = [&](Instant instant) {
    return now.wall - std::chrono::duration_cast<microseconds>(now.mono - instant);
  };
  telemetry::Span request{.trace = asked ? asked->trace : tracer.new_trace(),
                          .id = tracer.new_span(),
                          .parent = asked ? asked->span : 0,
                          .kind = telemetry::SpanKind::kServer,
                          .name = name_of(exchange.asked),
                          .begin = at(exchange.started),
                          .end = now.wall,
                          .attributes = attributes_of(exchange, code),
                          .failed = code >= kServerError};
  std::vector<telemetry::Span> spans;
  if (exchange.dispatched && *exchange.dispatched > exchange.started) {
    spans.push_back({.trace = request.trace,
                     .id = tracer.new_span(),
                     .parent = request.id,
                     .name = "wait for a turn",
                     .begin = request.begin,
                     .end = at(*exchange.dispatched),
                     .attributes = {}});
  }
  for (const RequestStep& step : exchange.steps.all()) {
    const auto [name, attribute] = words_of(step.of);
    spans.push_back({.trace = request.trace,
                     .id = tracer.new_span(),
                     .parent = request.id,
                     .kind = telemetry::SpanKind::kClient,
                     .name = std::string(name),
                     .begin = at(step.begun),
                     .end = step.ended ? at(*step.ended) : now.wall,
                     .attributes = {{std::string(attribute), cut(step.whom)}},
                     .failed = step.failed || !step.ended});
  }
  if (const std::size_t left_out = exchange.steps.left_out(); left_out > 0)
    request.attributes.push_back({"spillway.steps_left_out", static_cast<std::int64_t>(left_out)});
  spans.insert(spans.begin(), std::move(request));
  tracer.add(std::move(spans));
}

}  // namespace spillway::apiserver
