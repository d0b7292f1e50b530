#include "wire/server/bootstrap_token_table.h"

#include "api/text/identities.h"

#include <openssl/crypto.h>

#include <utility>

namespace spillway::wire {
namespace {

constexpr std::string_view kUserPrefix = "system:bootstrap:";
constexpr std::string_view kGroup = "system:bootstrappers";

bool same_secret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

void BootstrapTokenTable::set(apiserver::BootstrapToken token) {
  const std::lock_guard lock(mutex_);
  std::string id = token.id;
  tokens_.insert_or_assign(std::move(id), std::move(token));
}

void BootstrapTokenTable::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  tokens_.erase(id);
}

std::optional<api::UserInfo> BootstrapTokenTable::identify(std::string_view token, WallTime now) const {
  if (!apiserver::BootstrapToken::has_token_form(token)) return std::nullopt;
  const std::size_t dot = token.find('.');
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(token.substr(0, dot));
  if (found == tokens_.end() || !same_secret(found->second.secret, token.substr(dot + 1))) return std::nullopt;
  if (found->second.expires && *found->second.expires <= now) return std::nullopt;
  api::UserInfo user{std::string(kUserPrefix) + found->first, {}, {std::string(kGroup)}};
  user.groups.insert(user.groups.end(), found->second.groups.begin(), found->second.groups.end());
  user.groups.emplace_back(api::kAuthenticatedGroup);
  return user;
}

}  // namespace spillway::wire
