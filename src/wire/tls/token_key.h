// The key that service account tokens are signed with: made once, kept in a folder, and what it signed is genuine.
// Tokens are JSON Web Tokens with an ECDSA P-256 signature (ES256); no other algorithm is accepted.
// Thread: any (immutable once made). Source: RFC 7515, 7518 (3.4), 7519; spec "API server contract", 19.2.
#pragma once

#include "api/json/json.h"
#include "apiserver/ports/tokens.h"
#include "base/error.h"
#include "wire/tls/openssl_handles.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace spillway::wire {

class TokenKey final : public apiserver::TokenSigner {
 public:
  static constexpr std::string_view kIssuer = "https://kubernetes.default.svc.cluster.local";
  static constexpr std::size_t kTokenBytesMax = std::size_t{16} * 1024;

  /// The key in `folder`/sa.key (mode 0600), made if there is none. The folder is made if its parent exists. Errors
  /// name the file.
  static Result<std::shared_ptr<const TokenKey>> open(const std::string& folder);

  TokenKey(KeyPtr key, std::string id) : key_(std::move(key)), id_(std::move(id)) {}

  std::string issuer() const override { return std::string(kIssuer); }

  Result<std::string> sign(const api::Json& claims) const override;

  /// True if the text has the form of a token signed with a key like this one; says nothing about the signature.
  static bool looks_like_token(std::string_view text);

  /// The claims of a token that this key has signed, whatever they say. kUnauthorized: it has not.
  Result<api::Json> verify(std::string_view token) const;

 private:
  KeyPtr key_;
  std::string id_;  // "kid": a digest of the public key
};

}  // namespace spillway::wire
