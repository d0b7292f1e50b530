// Deletes objects for clients and for the server itself: preconditions, grace of pods, finalizers, propagation policy.
// Thread: loop. Source: spec "API server contract", 11.
#pragma once

#include "api/exchange/status.h"
#include "api/json/json.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "apiserver/request/request_options.h"
#include "apiserver/webhooks/webhook_admission.h"
#include "apiserver/write/committer.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spillway::apiserver {

struct RemoveJob {
  const Resource* resource = nullptr;
  std::string ns;
  std::string name;
  DeleteOptions options;
  ExchangePtr asked = nullptr;  // the request whose webhooks are called; null: none are
};

struct Removed {
  ObjectPtr object;   // the present object, or its last state
  bool gone = false;  // false: the object waits for its grace period or its finalizers
};

using RemoveDone = std::move_only_function<void(api::StatusResult<Removed>)>;

class Remover {
 public:
  Remover(Core& core, Committer& committer) : core_(core), committer_(committer) {}

  /// Called for every deletion of a request. `webhooks` must outlive the remover.
  void ask_webhooks(WebhookAdmission& webhooks) { webhooks_ = &webhooks; }

  void remove(RemoveJob job, RemoveDone done);

 private:
  class Removal;

  Core& core_;
  Committer& committer_;
  WebhookAdmission* webhooks_ = nullptr;
};

}  // namespace spillway::apiserver
