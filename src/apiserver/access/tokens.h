// serviceaccounts/token: composes the claims of a token; the signature comes from a port.
// Thread: loop. Source: Kubernetes docs, "Managing Service Accounts"; spec "API server contract", 19.2.
#pragma once

#include "api/exchange/account_token.h"
#include "apiserver/access/node_restriction.h"
#include "apiserver/ports/tokens.h"
#include "apiserver/read/core.h"
#include "apiserver/request/exchange.h"
#include "base/time.h"

#include <optional>
#include <string>

namespace spillway::apiserver {

class TokenPath {
 public:
  /// `life_max`: the longest life of a token; nullopt: as long as the request wants.
  TokenPath(Core& core, const NodeRestriction& restriction, const TokenSigner* signer, std::optional<Duration> life_max)
      : core_(core), restriction_(restriction), signer_(signer), life_max_(life_max) {}

  void create(const ExchangePtr& exchange);

 private:
  /// Fills in the claims of the user and of the bound object. 404 or 409 when the object to bind to is not there.
  api::StatusResult<void> bind(const StoredObject& account, const api::Json& request, api::AccountToken& token) const;

  Core& core_;
  const NodeRestriction& restriction_;
  const TokenSigner* signer_;
  std::optional<Duration> life_max_;
};

}  // namespace spillway::apiserver
