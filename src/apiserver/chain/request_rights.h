// The rights of a request, by the state that this server knows now: the objects that its token is bound to, and its
// user's rights. Thread: loop.
#pragma once

#include "apiserver/access/bound_tokens.h"
#include "apiserver/access/gatekeeper.h"
#include "apiserver/request/exchange.h"
#include "apiserver/serving/serving_state.h"

namespace spillway::apiserver {

class RequestRights {
 public:
  /// Every reference must outlive the rights.
  RequestRights(const ServingState& state, const BoundTokens& tokens, const Gatekeeper& authorizer)
      : state_(state), tokens_(tokens), authorizer_(authorizer) {}

  /// Checks that the objects which the token is bound to still exist. No error while the server does not serve: the
  /// objects may not be loaded.
  Outcome check_token(const Exchange& exchange) const {
    const auto& token = exchange.user().token;
    return token && state_.is_serving() ? tokens_.check(*token) : Outcome();
  }

  Verdict authorize(const Exchange& exchange) const { return authorizer_.authorize(exchange.user(), exchange.asked); }

  bool is_refused(const Exchange& exchange) const { return !check_token(exchange) || !authorize(exchange).allowed; }

 private:
  const ServingState& state_;
  const BoundTokens& tokens_;
  const Gatekeeper& authorizer_;
};

}  // namespace spillway::apiserver
