// Questions about identity and rights: POST of a review answers it, nothing is stored.
// Thread: loop. Source: spec "API server contract", 2, 19.6; Kubernetes docs, "Authorization Overview".
#pragma once

#include "apiserver/access/authorizer.h"
#include "apiserver/access/bound_tokens.h"
#include "apiserver/access/role_rules.h"
#include "apiserver/ports/tokens.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"

namespace spillway::apiserver {

class Reviews {
 public:
  /// Without an authenticator every token is refused.
  Reviews(Core& core, const Authorizer& authorizer, const RoleRules& roles, const BoundTokens& bound,
          const TokenAuthenticator* authenticator)
      : core_(core), authorizer_(authorizer), roles_(roles), bound_(bound), authenticator_(authenticator) {}

  /// POST to a resource that is not stored.
  void create(const ExchangePtr& exchange);

 private:
  api::StatusResult<void> access(const Exchange& exchange, api::Json& review) const;
  api::StatusResult<void> token(api::Json& review) const;
  void rules(const Exchange& exchange, api::Json& review) const;

  Core& core_;
  const Authorizer& authorizer_;
  const RoleRules& roles_;
  const BoundTokens& bound_;
  const TokenAuthenticator* authenticator_;
};

}  // namespace spillway::apiserver
