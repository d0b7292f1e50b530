#include "apiserver/access/bootstrap_secrets.h"

#include "api/text/base64.h"
#include "api/text/time_text.h"
#include "base/ascii.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::apiserver {
namespace {

using api::Json;

constexpr std::string_view kNamespace = "kube-system";
constexpr std::string_view kNamePrefix = "bootstrap-token-";
constexpr std::string_view kType = "bootstrap.kubernetes.io/token";
constexpr std::string_view kGroupPrefix = "system:bootstrappers:";
constexpr std::size_t kGroupRestMax = 256;

/// Empty: there is none that can be read.
std::string value_of(const Json& secret, std::string_view key) {
  return api::decode_base64(secret.string_at({"data", key})).value_or(std::string());
}

/// "system:bootstrappers:" and lower-case letters, digits, colons and dashes, the last of which is none of these two.
bool is_group(std::string_view group) {
  if (!group.starts_with(kGroupPrefix)) return false;
  const std::string_view rest = group.substr(kGroupPrefix.size());
  const auto is_alphanumeric = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); };
  return !rest.empty() && rest.size() <= kGroupRestMax && is_alphanumeric(rest.back()) &&
         std::ranges::all_of(rest, [&](char c) { return is_alphanumeric(c) || c == ':' || c == '-'; });
}

/// nullopt: one of them is not allowed.
std::optional<std::vector<std::string>> groups_of(std::string_view text) {
  std::vector<std::string> groups;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view group = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (!is_group(group)) return std::nullopt;
    if (std::ranges::find(groups, group) == groups.end()) groups.emplace_back(group);
  }
  return groups;
}

bool is_token_name(const StoredObject& object) {
  return object.ns == kNamespace && object.name.starts_with(kNamePrefix);
}

}  // namespace

std::optional<BootstrapToken> bootstrap_token_of(const Json& secret) {
  if (secret.string_at({"metadata", "namespace"}) != kNamespace || secret.string_at({"type"}) != kType ||
      !secret.string_at({"metadata", "deletionTimestamp"}).empty() ||
      value_of(secret, "usage-bootstrap-authentication") != "true") {
    return std::nullopt;
  }
  BootstrapToken token{
      .id = value_of(secret, "token-id"), .secret = value_of(secret, "token-secret"), .groups = {}, .expires = {}};
  if (!BootstrapToken::has_token_form(token.id + "." + token.secret)) return std::nullopt;
  if (secret.string_at({"metadata", "name"}) != std::string(kNamePrefix) + token.id) return std::nullopt;
  if (const std::string expiration = value_of(secret, "expiration"); !expiration.empty()) {
    const auto expires = api::parse_time(expiration);
    if (!expires) return std::nullopt;
    token.expires = *expires;
  }
  auto groups = groups_of(value_of(secret, "auth-extra-groups"));
  if (!groups) return std::nullopt;
  token.groups = *std::move(groups);
  return token;
}

BootstrapSecrets::BootstrapSecrets(Core& core, BootstrapTokens* tokens)
    : tokens_(tokens), secrets_(core.cache.of(core.registry.get("secrets"))) {}

void BootstrapSecrets::load() {
  if (tokens_ == nullptr) return;
  for (const auto& [key, object] : secrets_.objects()) read(*object);
}

void BootstrapSecrets::on_event(const ResourceCache& cache, const EventPtr& event) {
  if (tokens_ == nullptr || &cache != &secrets_) return;
  if (event->object) return read(*event->object);
  if (event->previous && is_token_name(*event->previous)) {
    tokens_->erase(event->previous->name.substr(kNamePrefix.size()));
  }
}

void BootstrapSecrets::read(const StoredObject& secret) {
  if (!is_token_name(secret)) return;
  if (auto token = bootstrap_token_of(secret.document())) {
    tokens_->set(*std::move(token));
  } else {
    tokens_->erase(secret.name.substr(kNamePrefix.size()));
  }
}

}  // namespace spillway::apiserver
