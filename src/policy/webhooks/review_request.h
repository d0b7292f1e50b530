// The question to a webhook: an AdmissionReview with a request. Thread: any (pure).
// Source: Kubernetes API reference, admission.k8s.io/v1 AdmissionReview.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "policy/webhooks/match.h"

#include <string>
#include <string_view>

namespace spillway::webhooks {

struct KindName {
  std::string_view group;
  std::string_view version;
  std::string_view kind;
};

struct ReviewRequest {
  std::string_view uid;
  Operation operation = Operation::kCreate;
  KindName kind;          // kind of the objects in the request
  ResourceName resource;  // as the webhook's rule names it
  KindName asked_kind;    // kind in the client's request
  ResourceName asked_resource;
  std::string_view subresource = {};
  std::string_view name = {};  // empty: not known yet
  std::string_view ns = {};
  const api::UserInfo& user;
  const api::Json* object = nullptr;
  const api::Json* old = nullptr;
  bool dry_run = false;
  const api::Json& options;  // CreateOptions, …; null: none
};

/// The request as match conditions see it: without `uid` and the objects.
api::Json review_facts(const ReviewRequest& request);

/// The body to send.
std::string review_text(const ReviewRequest& request);

}  // namespace spillway::webhooks
