// Questions about identity and rights: POST of a review answers it, nothing is stored.
// Thread: loop. Source: spec "API server contract", 2, 19.6; Kubernetes docs, "Authorization Overview".
#pragma once

#include "apiserver/authorizer.h"
#include "apiserver/core.h"
#include "apiserver/exchange.h"
#include "apiserver/role_rules.h"

namespace spillway::apiserver {

class Reviews {
 public:
  Reviews(const Authorizer& authorizer, const RoleRules& roles) : authorizer_(authorizer), roles_(roles) {}

  /// POST to a resource that is not stored.
  void create(const ExchangePtr& exchange);

 private:
  api::StatusResult<void> access(const Exchange& exchange, api::Json& review) const;
  void rules(const Exchange& exchange, api::Json& review) const;

  const Authorizer& authorizer_;
  const RoleRules& roles_;
};

}  // namespace spillway::apiserver
