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
  ObjectPtr object;   // as it is now, or its last state
  bool gone = false;  // false: it waits for its grace period or its finalizers
};

using RemoveDone = std::move_only_function<void(api::StatusResult<Removed>)>;

class Remover {
 public:
  Remover(Core& core, Committer& committer) : core_(core), committer_(committer) {}

  /// Asked about every deletion of a request. `webhooks` must outlive the remover.
  void ask_webhooks(WebhookAdmission& webhooks) { webhooks_ = &webhooks; }

  void remove(RemoveJob job, RemoveDone done);

 private:
  struct Removal;

  void attempt(const std::shared_ptr<Removal>& state, const ObjectPtr& current);
  void ask(const std::shared_ptr<Removal>& state, const ObjectPtr& current);
  void ask_about(const std::shared_ptr<Removal>& state, const ObjectPtr& current,
                 const api::StatusResult<std::vector<ObjectPtr>>& shown);
  void carry_out(const std::shared_ptr<Removal>& state, const ObjectPtr& current);

  Core& core_;
  Committer& committer_;
  WebhookAdmission* webhooks_ = nullptr;
};

}  // namespace spillway::apiserver
