// Checks that the objects of a bound service account token still exist: the account, and the pod, secret or node.
// Thread: loop. Source: Kubernetes docs, "Managing Service Accounts", bound tokens; spec "API server contract", 19.2.
#pragma once

#include "api/exchange/account_token.h"
#include "apiserver/read/core.h"

#include <string_view>

namespace spillway::apiserver {

class BoundTokens {
 public:
  /// A token stays valid this long after its object is deleted, so that a pod can end its work in order.
  static constexpr Duration kAfterDeletion = seconds(60);

  explicit BoundTokens(Core& core) : core_(core) {}

  /// kUnauthorized: which object is gone, or is another one by now.
  Outcome check(const api::AccountToken& token) const;

 private:
  Outcome check_object(std::string_view plural, std::string_view ns, const api::ObjectIdentity& object) const;

  Core& core_;
};

}  // namespace spillway::apiserver
