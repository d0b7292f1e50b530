// The bootstrap tokens that are valid now. Thread: any. Bounds: one entry per Secret of the cluster.
#pragma once

#include "api/exchange/exchange.h"
#include "apiserver/ports/bootstrap_tokens.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::wire {

class BootstrapTokenTable final : public apiserver::BootstrapTokens {
 public:
  void set(apiserver::BootstrapToken token) override;
  void erase(const std::string& id) override;

  /// "system:bootstrap:ID" in its groups; nullopt: there is no such token, it has another secret, or it has expired.
  /// The time it takes does not reveal the secret.
  std::optional<api::UserInfo> identify(std::string_view token, WallTime now) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, apiserver::BootstrapToken, std::less<>> tokens_;  // by id
};

}  // namespace spillway::wire
