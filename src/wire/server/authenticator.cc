#include "wire/server/authenticator.h"

#include "api/exchange/account_token.h"
#include "api/object/meta.h"
#include "api/text/identities.h"
#include "api/text/time_text.h"
#include "base/check.h"
#include "wire/tls/private_file.h"

#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace spillway::wire {

namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";
// tolerated, because this clock may have been set back since the token was made
constexpr microseconds kClockSkew = minutes(1);
constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";

std::string digest_of(std::string_view token) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  SPILLWAY_CHECK(EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

bool same_ignoring_case(std::string_view a, std::string_view lower_case) {
  return std::ranges::equal(a, lower_case, {},
                            [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
}

void add_group(api::UserInfo& user, std::string_view group) {
  if (std::ranges::find(user.groups, group) == user.groups.end()) user.groups.emplace_back(group);
}

/// The user that an administrator impersonates; nullopt: the request does not impersonate.
Result<std::optional<api::UserInfo>> impersonated(const api::Request& request) {
  api::UserInfo target;
  target.name = request.header("impersonate-user");
  target.uid = request.header("impersonate-uid");
  bool asked = !target.name.empty() || !target.uid.empty();
  for (const auto& [name, value] : request.headers) {
    if (name == "impersonate-group") add_group(target, value);
    if (name.starts_with(kExtraPrefix)) {
      SPILLWAY_TRY(key, api::percent_decode(std::string_view(name).substr(kExtraPrefix.size())));
      target.extra[key].push_back(value);
    }
    asked = asked || name == "impersonate-group" || name.starts_with(kExtraPrefix);
  }
  if (!asked) return std::optional<api::UserInfo>();
  if (target.name.empty()) {
    return make_error(ErrorCode::kBadRequest, "impersonation of a uid, groups or extras without Impersonate-User");
  }
  if (target.name.starts_with(kServiceAccountPrefix) && target.groups.empty()) {
    const std::string_view rest = std::string_view(target.name).substr(kServiceAccountPrefix.size());
    add_group(target, "system:serviceaccounts");
    add_group(target, fmt::format("system:serviceaccounts:{}", rest.substr(0, rest.find(':'))));
  }
  add_group(target, target.name == api::kAnonymousUser ? api::kUnauthenticatedGroup : api::kAuthenticatedGroup);
  return std::optional(std::move(target));
}

/// Splits one line of CSV; fields may be in double quotes, a quote within is doubled.
Result<std::vector<std::string>> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (quoted || (c != ' ' && c != '\t' && c != '\r')) {
      fields.back() += c;
    }
  }
  if (quoted) return make_error(ErrorCode::kInvalid, "a quote is not closed");
  return fields;
}

Result<TokenEntry> parse_token_line(std::string_view line) {
  SPILLWAY_TRY(fields, split_csv(line));
  if (fields.size() < 3 || fields.size() > 4) {
    return make_error(ErrorCode::kInvalid, "expected token,user,uid[,\"group1,group2\"], got {} fields", fields.size());
  }
  if (fields[0].empty() || fields[1].empty()) return make_error(ErrorCode::kInvalid, "token or user is empty");
  TokenEntry entry{fields[0], {fields[1], fields[2], {}}};
  std::string_view groups = fields.size() == 4 ? std::string_view(fields[3]) : std::string_view();
  while (!groups.empty()) {
    const std::size_t comma = groups.find(',');
    std::string_view group = groups.substr(0, comma);
    groups.remove_prefix(comma == std::string_view::npos ? groups.size() : comma + 1);
    const std::size_t first = group.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    add_group(entry.user, group.substr(first, group.find_last_not_of(' ') - first + 1));
  }
  return entry;
}

}  // namespace

std::optional<std::string_view> bearer_token(std::string_view header) {
  constexpr std::string_view scheme = "bearer";
  const std::size_t blank = header.find(' ');
  if (blank == std::string_view::npos || !same_ignoring_case(header.substr(0, blank), scheme)) return std::nullopt;
  const std::size_t begin = header.find_first_not_of(' ', blank);
  if (begin == std::string_view::npos) return std::nullopt;
  return header.substr(begin, header.find_last_not_of(' ') - begin + 1);
}

Result<std::vector<TokenEntry>> parse_token_file(std::string_view text, std::string_view file) {
  std::vector<TokenEntry> entries;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.starts_with('#')) continue;
    auto entry = parse_token_line(line);
    if (!entry) return invalid(fmt::format("{}:{}", file, number), "{}", entry.error().message);
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<std::vector<TokenEntry>> read_token_file(const std::string& path) {
  SPILLWAY_TRY(text, read_file(path));
  return parse_token_file(text, path);
}

Authenticator::Authenticator(Options options)
    : anonymous_(std::make_shared<const api::UserInfo>(std::move(options.anonymous))),
      account_key_(std::move(options.account_key)),
      bootstrap_tokens_(std::move(options.bootstrap_tokens)),
      tokens_verified_(options.verified) {
  if (options.metrics != nullptr) {
    certificate_left_ = options.metrics->histogram(
        "apiserver_client_certificate_expiration_seconds",
        "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
        {0, 1'800, 3'600, 7'200, 21'600, 43'200, 86'400, 172'800, 345'600, 604'800, 2'592'000, 7'776'000, 15'552'000,
         31'104'000});
  }
  for (TokenEntry& entry : options.tokens) {
    add_group(entry.user, api::kAuthenticatedGroup);
    user_by_token_digest_.insert_or_assign(digest_of(entry.token), std::move(entry.user));
  }
}

Result<Authenticator::Identity> Authenticator::identify_account(std::string_view token,
                                                                const std::vector<std::string>& audiences,
                                                                WallTime now) const {
  SPILLWAY_TRY(claims, account_key_->verify(token));
  SPILLWAY_TRY(account, api::parse_claims(claims));
  if (account.issuer != account_key_->issuer()) {
    return make_error(ErrorCode::kUnauthorized, "token is of another issuer: \"{}\"", account.issuer);
  }
  if (now < account.not_before - kClockSkew) {
    return make_error(ErrorCode::kUnauthorized, "token is not valid before {}", api::format_time(account.not_before));
  }
  if (now >= account.expires) {
    return make_error(ErrorCode::kUnauthorized, "token has expired at {}", api::format_time(account.expires));
  }
  Identity identity;
  for (const std::string& audience : audiences) {
    if (std::ranges::find(account.audiences, audience) != account.audiences.end()) {
      identity.audiences.push_back(audience);
    }
  }
  if (identity.audiences.empty()) {
    return make_error(ErrorCode::kUnauthorized, "token is meant for \"{}\", not for \"{}\"",
                      fmt::join(account.audiences, "\", \""), fmt::join(audiences, "\", \""));
  }
  identity.user = api::user_of(std::make_shared<const api::AccountToken>(std::move(account)));
  return identity;
}

Result<std::optional<Authenticator::Identity>> Authenticator::identify_token(std::string_view token,
                                                                             const std::vector<std::string>& audiences,
                                                                             WallTime now) const {
  const std::vector<std::string> own{std::string(TokenKey::kIssuer)};
  const std::vector<std::string>& wanted = audiences.empty() ? own : audiences;
  if (const auto known = user_by_token_digest_.find(digest_of(token)); known != user_by_token_digest_.end()) {
    // A static token is good for this API server alone.
    if (std::ranges::find(wanted, own.front()) == wanted.end()) return std::optional<Identity>();
    return std::optional(Identity{known->second, own});
  }
  if (bootstrap_tokens_ && apiserver::BootstrapToken::has_token_form(token)) {
    auto user = bootstrap_tokens_->identify(token, now);
    if (!user || std::ranges::find(wanted, own.front()) == wanted.end()) return std::optional<Identity>();
    return std::optional(Identity{*std::move(user), own});
  }
  if (!account_key_ || !TokenKey::has_token_form(token)) return std::optional<Identity>();
  SPILLWAY_TRY(identity, identify_account(token, wanted, now));
  return std::optional(std::move(identity));
}

Outcome Authenticator::check_certificate(const PeerCertificate& certificate, WallTime now) const {
  if (certificate.problem) {
    return make_error(ErrorCode::kUnauthorized, "Unauthorized: client certificate: {}", *certificate.problem);
  }
  if (certificate.end) {
    certificate_left_.observe(std::chrono::duration<double>(*certificate.end - now).count());
    if (*certificate.end <= now) {
      return make_error(ErrorCode::kUnauthorized, "Unauthorized: client certificate: certificate has expired");
    }
  }
  if (certificate.common_name.empty()) {
    return make_error(ErrorCode::kUnauthorized, "Unauthorized: client certificate without a common name");
  }
  return {};
}

Result<UserPtr> Authenticator::identify_shared(const std::optional<PeerCertificate>& certificate,
                                               const api::Request& request, WallTime now,
                                               UserPtr& of_certificate) const {
  if (certificate) {
    SPILLWAY_TRY_VOID(check_certificate(*certificate, now));
    if (!of_certificate) {
      api::UserInfo user{certificate->common_name, "", certificate->organizations};
      add_group(user, api::kAuthenticatedGroup);
      of_certificate = std::make_shared<const api::UserInfo>(std::move(user));
    }
    return of_certificate;
  }
  const std::optional<std::string_view> token = bearer_token(request.header("authorization"));
  if (!token || tokens_verified_ == Tokens::kHandler) return anonymous_;
  auto identity = identify_token(*token, {}, now);
  if (!identity) return make_error(ErrorCode::kUnauthorized, "Unauthorized: {}", identity.error().message);
  if (!*identity) return make_error(ErrorCode::kUnauthorized, "Unauthorized");
  return std::make_shared<const api::UserInfo>(std::move((*identity)->user));
}

Result<api::UserInfo> Authenticator::identify(const std::optional<PeerCertificate>& certificate,
                                              const api::Request& request, WallTime now) const {
  UserPtr of_certificate;
  SPILLWAY_TRY(user, identify_shared(certificate, request, now, of_certificate));
  return *user;
}

Result<api::UserInfo> Authenticator::authenticate(const std::optional<PeerCertificate>& certificate,
                                                  const api::Request& request, WallTime now) const {
  UserPtr of_certificate;
  SPILLWAY_TRY(user, authenticate(certificate, request, now, of_certificate));
  return *user;
}

Result<UserPtr> Authenticator::authenticate(const std::optional<PeerCertificate>& certificate,
                                            const api::Request& request, WallTime now, UserPtr& of_certificate) const {
  SPILLWAY_TRY(user, identify_shared(certificate, request, now, of_certificate));
  if (tokens_verified_ == Tokens::kHandler) return user;
  SPILLWAY_TRY(target, impersonated(request));
  if (!target) return user;
  if (std::ranges::find(user->groups, api::kMastersGroup) == user->groups.end()) {
    return make_error(
        ErrorCode::kForbidden,
        "users \"{}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in API group \"\" at "
        "the cluster scope",
        target->name, user->name);
  }
  target->impersonator = std::move(user);
  return std::make_shared<const api::UserInfo>(*std::move(target));
}

}  // namespace spillway::wire
