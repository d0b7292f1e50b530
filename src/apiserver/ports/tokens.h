// Bearer tokens: ports to sign one and to authenticate the user of one. Thread: any.
// Source: spec "API server contract", 19.
#pragma once

#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "base/error.h"
#include "base/time.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::apiserver {

/// Port: signs service account tokens. Implemented by wire/.
class TokenSigner {
 public:
  virtual ~TokenSigner() = default;
  /// The claim "iss": a URL. Also the audience of this API server.
  virtual std::string issuer() const = 0;
  /// A JSON Web Token with these claims.
  virtual Result<std::string> sign(const api::Json& claims) const = 0;
};

/// Port: whose a bearer token is, for TokenReview. Implemented by wire/.
class TokenAuthenticator {
 public:
  struct Identity {
    api::UserInfo user;
    std::vector<std::string> audiences;  // the requested audiences that the token has
  };

  virtual ~TokenAuthenticator() = default;
  /// `audiences`: the token must be valid for at least one of them; empty: for this API server. nullopt: the token is
  /// unknown. kUnauthorized: it is a service account token, but forged, expired or for other audiences.
  virtual Result<std::optional<Identity>> identify_token(std::string_view token,
                                                         const std::vector<std::string>& audiences,
                                                         WallTime now) const = 0;
};

}  // namespace spillway::apiserver
