// serviceaccounts/token: what a token says about its bearer; the signature comes from a port.
// Thread: loop. Source: Kubernetes docs, "Managing Service Accounts"; spec "API server contract", 19.2.
#pragma once

#include "apiserver/core.h"
#include "apiserver/exchange.h"
#include "apiserver/node_restriction.h"
#include "apiserver/server.h"

#include <string>

namespace spillway::apiserver {

class TokenPath {
 public:
  TokenPath(Core& core, const NodeRestriction& restriction, TokenSigner* signer)
      : core_(core), restriction_(restriction), signer_(signer) {}

  void create(const ExchangePtr& exchange);

 private:
  /// The claim "kubernetes.io". 404 or 409 when the object the token is to be bound to is not there.
  api::StatusResult<api::Json> private_claim(const StoredObject& account, const api::Json& request) const;

  Core& core_;
  const NodeRestriction& restriction_;
  TokenSigner* signer_;
};

}  // namespace spillway::apiserver
