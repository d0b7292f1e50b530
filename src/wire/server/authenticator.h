// Identifies the sender of a request: by client certificate, bearer token (of a static file, of a service account, or
// of a machine that is to become a node), or as anonymous; and the user that an administrator impersonates. Thread: any
// (immutable once made). Source: spec "API server contract", 19.1-19.3; Kubernetes docs, "Authenticating".
#pragma once

#include "api/exchange/exchange.h"
#include "api/text/identities.h"
#include "apiserver/ports/tokens.h"
#include "base/error.h"
#include "base/time.h"
#include "telemetry/metrics.h"
#include "wire/net/byte_stream.h"
#include "wire/server/bootstrap_token_table.h"
#include "wire/tls/token_key.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::wire {

/// The sender of requests, shared by them.
using UserPtr = std::shared_ptr<const api::UserInfo>;

/// One line of a static token file: token,user,uid[,"group1,group2"].
struct TokenEntry {
  std::string token;
  api::UserInfo user;
};

/// Parses a token file. kInvalid: names the file, the line and the mistake. Empty lines and lines that start with # are
/// skipped.
Result<std::vector<TokenEntry>> parse_token_file(std::string_view text, std::string_view file);
Result<std::vector<TokenEntry>> read_token_file(const std::string& path);

/// The token of "Bearer TOKEN"; nullopt for other schemes, which are not supported.
std::optional<std::string_view> bearer_token(std::string_view header);

class Authenticator final : public apiserver::TokenAuthenticator {
 public:
  /// The place where tokens are verified. kHandler: a client with a token is anonymous here, the header stays with the
  /// request, and impersonation is not possible.
  enum class Tokens { kHere, kHandler };

  struct Options {
    std::vector<TokenEntry> tokens;
    std::shared_ptr<const TokenKey> account_key;                       // null: service account tokens are refused
    std::shared_ptr<const BootstrapTokenTable> bootstrap_tokens = {};  // null: bootstrap tokens are refused
    Tokens verified = Tokens::kHere;
    telemetry::Registry* metrics = nullptr;  // must outlive the authenticator; nullptr: nothing is counted
    /// The user of a request without credentials.
    api::UserInfo anonymous = {std::string(api::kAnonymousUser), "", {std::string(api::kUnauthenticatedGroup)}};
  };

  explicit Authenticator(Options options);

  /// The certificate counts before the token. kUnauthorized: a certificate that does not verify or has ended since the
  /// connection began, an unknown token, a service account token that is forged, expired or for others. kForbidden:
  /// impersonation by a user outside system:masters. kBadRequest: impersonated groups without a user.
  Result<api::UserInfo> authenticate(const std::optional<PeerCertificate>& certificate, const api::Request& request,
                                     WallTime now) const;

  /// Authenticates a request of one connection. `of_certificate`: the user of its certificate, made with the first
  /// request and shared by all; null before. The validity of the certificate is checked with every request.
  Result<UserPtr> authenticate(const std::optional<PeerCertificate>& certificate, const api::Request& request,
                               WallTime now, UserPtr& of_certificate) const;

  /// Authenticates like authenticate(), but ignores impersonation: the real sender.
  Result<api::UserInfo> identify(const std::optional<PeerCertificate>& certificate, const api::Request& request,
                                 WallTime now) const;

  Tokens tokens_verified() const { return tokens_verified_; }

  Result<std::optional<Identity>> identify_token(std::string_view token, const std::vector<std::string>& audiences,
                                                 WallTime now) const override;

 private:
  Outcome check_certificate(const PeerCertificate& certificate, WallTime now) const;
  Result<UserPtr> identify_shared(const std::optional<PeerCertificate>& certificate, const api::Request& request,
                                  WallTime now, UserPtr& of_certificate) const;
  Result<Identity> identify_account(std::string_view token, const std::vector<std::string>& audiences,
                                    WallTime now) const;

  // Users by the token's digest, so that the time of a lookup does not reveal a token.
  std::map<std::string, api::UserInfo> user_by_token_digest_;
  UserPtr anonymous_;
  std::shared_ptr<const TokenKey> account_key_;
  std::shared_ptr<const BootstrapTokenTable> bootstrap_tokens_;
  Tokens tokens_verified_;
  mutable telemetry::Histogram certificate_left_;
};

}  // namespace spillway::wire
