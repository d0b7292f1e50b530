// The key that service account tokens are signed with: made once, kept in a folder, or given in a file; and the keys
// whose tokens are genuine. Tokens are JSON Web Tokens signed with an ECDSA P-256 key (ES256) or an RSA key (RS256); no
// other algorithm is accepted. Thread: any (immutable once made). Source: RFC 7515, 7517, 7518, 7519; spec "API
// server contract", 19.2; Kubernetes docs, kube-apiserver, --service-account-key-file.
#pragma once

#include "api/json/json.h"
#include "apiserver/ports/tokens.h"
#include "base/error.h"
#include "wire/tls/openssl_handles.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::wire {

class TokenKey final : public apiserver::TokenSigner {
 public:
  static constexpr std::string_view kIssuer = "https://kubernetes.default.svc.cluster.local";
  static constexpr std::size_t kTokenBytesMax = std::size_t{16} * 1024;

  static constexpr std::size_t kKeysMax = 16;
  static constexpr int kRsaBitsMin = 2048;

  struct Files {
    std::string signing;                // a private key; empty: the folder's own
    std::vector<std::string> accepted;  // public or private keys or certificates, several in a file; besides the first
  };

  /// The key in `folder`/sa.key (mode 0600), made if there is none. The folder is made if its parent exists. Errors
  /// name the file.
  static Result<std::shared_ptr<const TokenKey>> open(const std::string& folder);
  /// Opens the keys in these files. Without files: open(folder).
  static Result<std::shared_ptr<const TokenKey>> open(const std::string& folder, const Files& files);

  /// Checks that the files can be used; nothing is made.
  static Outcome check(const Files& files);

  struct Key {
    KeyPtr key;
    std::string id;  // "kid": a digest of the public key
    std::string_view algorithm;
  };

  /// The first key signs.
  explicit TokenKey(std::vector<Key> keys) : keys_(std::move(keys)) {}

  /// The id of the signing key: equal for servers that sign with the same key.
  const std::string& id() const { return keys_.front().id; }

  std::string issuer() const override { return std::string(kIssuer); }

  Result<std::string> sign(const api::Json& claims) const override;

  /// The public keys whose tokens are genuine, as a JSON Web Key Set (RFC 7517).
  Result<api::Json> key_set() const;
  /// The OpenID Connect discovery document of the issuer. `keys_url`: the address of key_set().
  api::Json discovery(std::string_view keys_url) const;

  /// True if the text has the form of a token signed with a key like this one; the signature is not verified.
  static bool has_token_form(std::string_view text);

  /// The claims of a token that one of the keys has signed, without checking them. kUnauthorized: none has.
  Result<api::Json> verify(std::string_view token) const;

 private:
  std::vector<Key> keys_;
};

}  // namespace spillway::wire
