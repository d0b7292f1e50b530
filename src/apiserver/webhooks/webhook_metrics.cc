#include "apiserver/webhooks/webhook_metrics.h"

#include <fmt/format.h>

namespace spillway::apiserver {

namespace {

using webhooks::Operation;
using webhooks::Webhook;

std::string_view type_of(const Webhook& webhook) {
  return webhook.phase == webhooks::Phase::kMutating ? "admit" : "validating";
}

std::string_view text_of(WebhookMetrics::Cause cause) {
  switch (cause) {
    case WebhookMetrics::Cause::kDenied:
      return "no_error";
    case WebhookMetrics::Cause::kNotCalled:
      return "calling_webhook_error";
    case WebhookMetrics::Cause::kServer:
      return "apiserver_internal_error";
  }
  return "";
}

/// Codes beyond those of HTTP are one.
std::string code_text(int code) {
  constexpr int kCodeMax = 600;
  return fmt::format("{}", code < 0 || code > kCodeMax ? kCodeMax : code);
}

}  // namespace

std::string WebhookMetrics::name_of(const Webhook& webhook) {
  if (names_.contains(webhook.name)) return webhook.name;
  if (names_.size() >= kNamesMax) return "other";
  return *names_.insert(webhook.name).first;
}

void WebhookMetrics::asked(const Webhook& webhook, Operation operation, Duration took, bool rejected, int code) {
  const std::string name = name_of(webhook);
  const std::string_view verb = to_string(operation);
  const std::string_view verdict = rejected ? "true" : "false";
  const auto [at, first] = durations_.try_emplace({Key{name, webhook.phase, operation}, rejected});
  if (first) {
    at->second = registry_.histogram(
        "apiserver_admission_webhook_admission_duration_seconds",
        "Admission webhook latency, by name, operation, type (validating or admit) and whether it rejected.",
        {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25},
        {{"name", name}, {"type", type_of(webhook)}, {"operation", verb}, {"rejected", verdict}});
  }
  at->second.observe(std::chrono::duration<double>(took).count());
  registry_
      .counter("apiserver_admission_webhook_request_total",
               "Admission webhook requests, by name, operation, type, code and whether they were rejected.",
               {{"name", name},
                {"type", type_of(webhook)},
                {"operation", verb},
                {"code", code_text(code)},
                {"rejected", verdict}})
      .add();
}

void WebhookMetrics::rejected(const Webhook& webhook, Operation operation, Cause cause, int code) {
  registry_
      .counter("apiserver_admission_webhook_rejection_count",
               "Requests that admission webhooks rejected, or that failed for them.",
               {{"name", name_of(webhook)},
                {"type", type_of(webhook)},
                {"operation", to_string(operation)},
                {"error_type", text_of(cause)},
                {"rejection_code", code_text(code)}})
      .add();
}

void WebhookMetrics::failed_open(const Webhook& webhook) {
  registry_
      .counter("apiserver_admission_webhook_fail_open_count",
               "Requests that continued although an admission webhook could not be asked.",
               {{"name", name_of(webhook)}, {"type", type_of(webhook)}})
      .add();
}

void WebhookMetrics::conditions_failed(const Webhook& webhook, Operation operation, std::size_t count) {
  if (count == 0) return;
  registry_
      .counter("apiserver_admission_match_condition_evaluation_errors_total",
               "Match conditions that had no value, by the name of what has them, its kind, type and the operation.",
               {{"name", name_of(webhook)},
                {"kind", "webhook"},
                {"type", type_of(webhook)},
                {"operation", to_string(operation)}})
      .add(static_cast<double>(count));
}

void WebhookMetrics::excluded(const Webhook& webhook, Operation operation) {
  registry_
      .counter("apiserver_admission_match_condition_exclusions_total",
               "Requests that its match conditions kept from a webhook.",
               {{"name", name_of(webhook)},
                {"kind", "webhook"},
                {"type", type_of(webhook)},
                {"operation", to_string(operation)}})
      .add();
}

}  // namespace spillway::apiserver
