// Metrics of webhook calls, under upstream's names. Names of webhooks are bounded: those beyond are "other". Thread:
// loop. Source: Kubernetes docs, "Kubernetes Metrics Reference", apiserver_admission_webhook_*,
// apiserver_admission_match_condition_*.
#pragma once

#include "base/time.h"
#include "policy/webhooks/match.h"
#include "policy/webhooks/webhook.h"
#include "telemetry/metrics.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

namespace spillway::apiserver {

class WebhookMetrics {
 public:
  static constexpr std::size_t kNamesMax = 100;

  explicit WebhookMetrics(telemetry::Registry& registry) : registry_(registry) {}

  enum class Cause { kDenied, kNotCalled, kServer };

  /// Counts a finished call. `code`: of its refusal; 0: there is none.
  void asked(const webhooks::Webhook& webhook, webhooks::Operation operation, Duration took, bool rejected, int code);
  void rejected(const webhooks::Webhook& webhook, webhooks::Operation operation, Cause cause, int code);
  void failed_open(const webhooks::Webhook& webhook);
  /// Counts match conditions that could not be evaluated.
  void conditions_failed(const webhooks::Webhook& webhook, webhooks::Operation operation, std::size_t count);
  /// Counts a webhook that is not called: a match condition is false or, with failurePolicy Ignore, has no value.
  void excluded(const webhooks::Webhook& webhook, webhooks::Operation operation);

 private:
  /// Name, phase, operation.
  using Key = std::tuple<std::string, webhooks::Phase, webhooks::Operation>;

  std::string name_of(const webhooks::Webhook& webhook);

  telemetry::Registry& registry_;
  std::set<std::string, std::less<>> names_;
  std::map<std::pair<Key, bool>, telemetry::Histogram> durations_;
};

}  // namespace spillway::apiserver
