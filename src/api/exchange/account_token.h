// The claims of a service account token as a value, and the user that its bearer is.
// Thread: any (plain values). Source: RFC 7519; Kubernetes docs, "Managing Service Accounts", bound tokens;
// spec "API server contract", 19.2.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spillway::api {

/// Identifies one object: a later object of the same name is another one.
struct ObjectIdentity {
  std::string name;
  std::string uid;  // empty: it did not exist when the token was made

  friend bool operator==(const ObjectIdentity&, const ObjectIdentity&) = default;
};

struct AccountToken {
  std::string issuer;
  std::string id;  // "jti"
  std::vector<std::string> audiences;
  WallTime issued;
  WallTime not_before;
  WallTime expires;
  std::string ns;
  ObjectIdentity account;
  // The objects to which the token is bound: at most one of pod and secret. A node beside a pod is where the pod runs.
  std::optional<ObjectIdentity> pod;
  std::optional<ObjectIdentity> secret;
  std::optional<ObjectIdentity> node;

  friend bool operator==(const AccountToken&, const AccountToken&) = default;
};

Json to_claims(const AccountToken& token);
/// kUnauthorized: which claim is missing, of another type, or contradicts another.
Result<AccountToken> parse_claims(const Json& claims);

/// system:serviceaccount:NS:NAME with its groups; what the token is bound to as extra.
UserInfo user_of(std::shared_ptr<const AccountToken> token);

}  // namespace spillway::api
