// Webhooks before the endpoints that do not write an object of their own kind: bindings, evictions, tokens,
// connections. Their request is admitted, and perhaps changed, before it is executed.
// Thread: loop. Source: Kubernetes docs, "Dynamic Admission Control", subresources.
#pragma once

#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/webhooks/webhook_admission.h"

#include <functional>
#include <memory>

namespace spillway::apiserver {

class EndpointGate {
 public:
  explicit EndpointGate(WebhookAdmission& admission) : admission_(admission) {}

  /// True if webhooks see requests of the route here, and not when an object is written.
  static bool concerns(const Route& route);

  /// Calls `proceed` once no webhook rejects the request, at once where none matches; else answers the exchange.
  void pass(const ExchangePtr& exchange, std::move_only_function<void()> proceed);

 private:
  struct Passage;
  using PassagePtr = std::shared_ptr<Passage>;

  void mutate(const PassagePtr& passage);
  void validate(const PassagePtr& passage);

  WebhookAdmission& admission_;
};

}  // namespace spillway::apiserver
